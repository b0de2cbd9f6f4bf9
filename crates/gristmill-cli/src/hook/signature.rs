//! What shows that a request is ours and was not altered: the headers of Standard
//! Webhooks, an HMAC with SHA-256 over the request's id, its time and its body.

use std::fmt;

use gristmill_contract::base64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes one may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Most of them: the new one and the old ones, while receivers change theirs.
const MOST: usize = 4;

/// The secrets that requests are signed with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<Vec<u8>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Reads one, or several with blanks between them.
    ///
    /// # Errors
    /// In words, and never with the secret.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let make = "make one with: echo whsec_$(head -c 32 /dev/urandom | base64)";
        let one = |text: &str| {
            let Some(key) = text.strip_prefix(PREFIX) else {
                return Err(format!("a secret begins with {PREFIX}; {make}"));
            };
            let key = base64::decode(key);
            let key = key.ok_or_else(|| format!("behind {PREFIX} stands no base64; {make}"))?;
            if !BYTES.contains(&key.len()) {
                let (bytes, least, most) = (key.len(), BYTES.start(), BYTES.end());
                return Err(format!("a secret has {least} to {most} bytes, not {bytes}; {make}"));
            }
            Ok(key)
        };
        let secrets: Vec<_> = text.split_whitespace().map(one).collect::<Result<_, _>>()?;
        match secrets.len() {
            0 => Err(format!("it is empty; {make}")),
            1..=MOST => Ok(Secrets(secrets)),
            many => Err(format!("there are {many} of them, and {MOST} are possible")),
        }
    }

    /// What `webhook-signature` says: one signature for each secret.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let sign = |key: &Vec<u8>| {
            // An HMAC takes a key of any length.
            let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
            mac.update(format!("{id}.{seconds}.").as_bytes());
            mac.update(body);
            Some(format!("v1,{}", base64::encode(&mac.finalize().into_bytes())))
        };
        let signed: Vec<String> = self.0.iter().filter_map(sign).collect();
        signed.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        let secrets = Secrets::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", b"{\"test\": 2432232314}");
        let signed = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(secrets.sign(id, 1_614_265_330, body), signed);
        let both =
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let both = Secrets::read(both).expect("two secrets").sign(id, 1_614_265_330, body);
        assert!(both.starts_with(&format!("{signed} v1,")) && both.len() == 95, "{both}");
    }

    #[test]
    fn what_is_no_secret_is_told_without_it() {
        for (text, part) in [
            ("", "it is empty"),
            ("s3cret", "begins with whsec_"),
            ("whsec_s3cret!", "no base64"),
            ("whsec_c2hvcnQ=", "24 to 64 bytes, not 5"),
        ] {
            let why = Secrets::read(text).expect_err(text);
            assert!(why.contains(part) && !why.contains("s3cret"), "{why}");
        }
        assert!(Secrets::read(&"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ".repeat(5)).is_err());
    }
}
