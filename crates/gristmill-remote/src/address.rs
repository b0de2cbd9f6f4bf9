//! Where a service is: an `http` or `https` URL, read once. Neither its text nor its debug
//! form shows a token.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The port when none is said.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// Where a service is, and what is shown to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    encrypted: bool,
    host: String,
    port: u16,
    /// What a request's `host` says.
    authority: String,
    /// What stands before `/v1`, without a slash at its end.
    prefix: String,
    token: Option<String>,
    /// Authorities that are trusted in place of the system's.
    ca: Option<PathBuf>,
}

/// Why a URL names no service, and what would. It repeats nothing that may be a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; write it like https://queues.example.org or http://127.0.0.1:4747", self.0)
    }
}

impl std::error::Error for AddressError {}

fn wrong<T>(why: &str) -> Result<T, AddressError> {
    Err(AddressError(why.to_owned()))
}

impl Address {
    /// Whether this text says that it is one.
    #[must_use]
    pub fn is_meant(url: &str) -> bool {
        url.starts_with("http://") || url.starts_with("https://")
    }

    /// The whole URL, token and all: to hand on to whoever may open it.
    #[must_use]
    pub fn reveal(&self) -> String {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("{token}@"));
        self.text(&token)
    }

    /// Whether what is shown is all there is.
    #[must_use]
    pub const fn is_shown_whole(&self) -> bool {
        self.token.is_none()
    }

    /// The same with this token, where the URL has none.
    #[must_use]
    pub fn or_token(mut self, token: Option<String>) -> Self {
        self.token = self.token.or(token);
        self
    }

    /// Whether what is sent can be read on the way to another machine.
    #[must_use]
    pub fn is_open_to_others(&self) -> bool {
        let ip = self.host.parse::<std::net::IpAddr>();
        let ours = ip.map_or(self.host == "localhost", |ip| ip.is_loopback());
        !self.encrypted && !ours
    }

    pub(crate) const fn encrypted(&self) -> bool {
        self.encrypted
    }

    pub(crate) fn host(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    #[cfg(feature = "tls")]
    pub(crate) const fn ca(&self) -> Option<&PathBuf> {
        self.ca.as_ref()
    }

    fn text(&self, before: &str) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        let ca = self.ca.as_ref().map_or_else(String::new, |ca| format!("?ca={}", ca.display()));
        format!("{scheme}://{before}{}{}{ca}", self.authority, self.prefix)
    }
}

/// Without the token.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(""))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        let (encrypted, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return wrong("a service's URL begins with http:// or https://"),
        };
        if rest.contains('#') {
            return wrong("a service's URL has no '#'");
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, q)| (rest, Some(q)));
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        // The last one: whatever stands before it is not sent as a name.
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        let token = user.map(secret).transpose()?;
        let (host, port) = named(authority)?;
        let ca = query.map(|query| match query.strip_prefix("ca=") {
            Some(file) if !file.is_empty() && !file.contains('&') => Ok(PathBuf::from(file)),
            _ => wrong("behind '?' only ca=FILE is known: the authorities to trust, in PEM"),
        });
        let ca = ca.transpose()?;
        if ca.is_some() && !encrypted {
            return wrong("ca=FILE is for https");
        }
        let prefix = path.trim_end_matches('/');
        if !prefix.bytes().all(|b| b.is_ascii_graphic()) || prefix.ends_with("/v1") {
            return wrong("the path is what stands before /v1, or nothing");
        }
        Ok(Address {
            encrypted,
            host,
            port: port.unwrap_or(if encrypted { HTTPS } else { HTTP }),
            authority: authority.to_owned(),
            prefix: prefix.to_owned(),
            token,
            ca,
        })
    }
}

/// The token in what stands before the `@`: behind its colon, or all of it.
fn secret(user: &str) -> Result<String, AddressError> {
    let token = user.split_once(':').map_or(user, |(_, token)| token);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
    if token.is_empty() || !token.bytes().all(plain) {
        return wrong("before '@' stands a token, as 'gristmill token create' shows it");
    }
    Ok(token.to_owned())
}

fn named(authority: &str) -> Result<(String, Option<u16>), AddressError> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or(""))),
        None => authority.split_once(':').map_or((authority, None), |(host, p)| (host, Some(p))),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return wrong("it names no host");
    }
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => wrong("a port is a number from 1 to 65535"),
    });
    Ok((host.to_owned(), port.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Address {
        url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn urls_are_read() {
        for (url, host, prefix) in [
            ("http://127.0.0.1:4747", ("127.0.0.1", 4747), ""),
            ("https://queues.example.org/", ("queues.example.org", 443), ""),
            ("http://queues/mill/", ("queues", 80), "/mill"),
            ("http://[::1]:99", ("::1", 99), ""),
            ("https://[::1]", ("::1", 443), ""),
        ] {
            let read = read(url);
            assert_eq!((read.host(), read.prefix()), (host, prefix), "{url}");
            assert_eq!((read.token(), read.is_shown_whole()), (None, true));
        }
        assert!(read("http://10.0.0.1").is_open_to_others());
        for url in ["https://10.0.0.1", "http://[::1]:99", "http://localhost:4747"] {
            assert!(!read(url).is_open_to_others(), "{url}");
        }
    }

    #[test]
    fn a_token_is_read_and_never_shown() {
        for url in ["https://s3cret@h/a", "https://me:s3cret@h/a", "https://:s3cret@h/a"] {
            let read = read(url);
            assert_eq!(read.token(), Some("s3cret"));
            assert!(!read.is_shown_whole());
            assert_eq!(read.to_string(), "https://h/a");
            assert_eq!(format!("{read:?}"), "Address(https://h/a)");
            assert_eq!(read.reveal(), "https://s3cret@h/a");
            assert_eq!(read.reveal().parse(), Ok(read.clone()));
            assert_eq!(read.or_token(Some("other".to_owned())).token(), Some("s3cret"));
        }
        let told = read("https://h?ca=/etc/ca.pem").or_token(Some("s3cret".to_owned()));
        assert_eq!(
            (told.token(), &*told.to_string()),
            (Some("s3cret"), "https://h?ca=/etc/ca.pem")
        );
    }

    #[test]
    fn a_mistake_repeats_no_token() {
        for url in [
            "http://",
            "http://s3cret@",
            "http://me:s3cret x@host",
            "http://s3cret@host:70000",
            "http://s3cret@host:0",
            "http://s3cret@host/#x",
            "http://s3cret@ho st",
            "http://s3cret@host/v1",
            "http://s3cret@host?token=s3cret",
            "http://s3cret@host?ca=x",
            "https://s3cret@host?ca=x&y=s3cret",
            "ftp://s3cret@host",
            "http://@host",
        ] {
            let error = url.parse::<Address>().expect_err(url);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
