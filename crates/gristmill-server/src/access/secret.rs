//! A token's own text, which is shown once, and what it hashes to, which is kept.

use std::fmt;

use gristmill::StoreError;
use gristmill::port::Token;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// What every token begins with, so that people and scanners know one when they see it.
const BEGINNING: &str = "gristmill_";
/// Hexadecimal digits behind it: 256 bits.
const DIGITS: usize = 64;

/// A token's own text. It is compared by its hash only, in constant time:
///
/// ```compile_fail
/// fn same(one: gristmill_server::Secret, other: gristmill_server::Secret) -> bool {
///     one == other
/// }
/// ```
pub struct Secret(String);

impl Secret {
    /// A fresh one.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub(crate) fn random() -> Result<Self, StoreError> {
        Ok(Secret(format!("{BEGINNING}{}{}", Token::random()?, Token::random()?)))
    }

    /// What somebody shows, if it has a token's form.
    pub(crate) fn shown_as(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(BEGINNING)?;
        let fits = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
        fits.then(|| Secret(text.to_owned()))
    }

    /// What it hashes to.
    pub(crate) fn digest(&self) -> Digest {
        Digest(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The text itself: to be shown once, to who made it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What a token hashes to.
#[derive(Clone)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Whether both are of one token, in constant time.
    pub(crate) fn is(&self, other: &Digest) -> Choice {
        self.0.ct_eq(&other.0)
    }

    /// As it is kept.
    pub(crate) fn text(&self) -> String {
        use fmt::Write as _;
        let mut text = String::with_capacity(DIGITS);
        for byte in self.0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// As it was kept.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != DIGITS || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_hash_alone() {
        let secret = Secret::random().expect("randomness");
        let kept = secret.digest().text();
        assert!(!kept.contains(secret.reveal()) && !secret.reveal().contains(&kept));
        let read = Digest::read(&kept).expect("as it was kept");
        let again = Secret::shown_as(secret.reveal()).expect("its form");
        assert!(bool::from(read.is(&again.digest())));
        let other = Secret::random().expect("randomness");
        assert!(!bool::from(read.is(&other.digest())));
        assert!(
            !format!("{secret:?}{read:?}").contains(&kept.get(..8).expect("digits").to_owned())
        );
    }

    #[test]
    fn what_has_no_tokens_form_is_none() {
        let good = Secret::random().expect("randomness");
        let good = good.reveal();
        for text in ["", "gristmill_", "x", good.get(1..).unwrap(), &format!("{good}0")] {
            assert!(Secret::shown_as(text).is_none(), "{text}");
        }
        for text in ["", "zz", &"z".repeat(64), &"ä".repeat(32)] {
            assert!(Digest::read(text).is_none(), "{text}");
        }
    }
}
