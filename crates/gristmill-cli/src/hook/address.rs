//! Where tasks are posted to: an `http` or `https` URL of the configuration, which is
//! trusted as it stands.

use std::fmt;

use hyper::Uri;

/// A URL, read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(super) encrypted: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// What the request's `host` says.
    pub(super) authority: String,
    /// The path and what is behind it.
    pub(super) target: String,
}

/// Without what is behind a `?`, which may be a password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "https" } else { "http" };
        let (path, more) = match self.target.split_once('?') {
            Some((path, _)) => (path, "?…"),
            None => (&*self.target, ""),
        };
        write!(f, "{scheme}://{}{path}{more}", self.authority)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Address {
    /// What a request's `host` says.
    #[cfg(feature = "otel")]
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Reads it.
    ///
    /// # Errors
    /// In words, without the URL.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let like = "write it like https://shop.example.org/tasks";
        let uri: Uri = text.parse().map_err(|error| format!("this is no URL: {error}; {like}"))?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("a handler's URL begins with http:// or https://; {like}")),
        };
        let Some(authority) = uri.authority() else { return Err(format!("no host; {like}")) };
        if authority.as_str().contains('@') {
            let why = "a URL with a user and a password: requests are signed with the secret";
            return Err(format!("{why}; {like}"));
        }
        if text.contains('#') {
            return Err(format!("what is behind # is never sent; {like}"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("no host; {like}"));
        }
        // One that cannot be read must not become another.
        let port = match (authority.port_u16(), authority.as_str().rsplit_once(':')) {
            (Some(port), _) => port,
            (None, Some((_, after))) if !after.ends_with(']') => {
                return Err(format!("a port is a number from 1 to 65535; {like}"));
            }
            _ if encrypted => 443,
            _ => 80,
        };
        Ok(Address {
            encrypted,
            host: host.to_owned(),
            port,
            authority: authority.to_string(),
            target: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_shown_without_secrets() {
        for (text, host, port, shown) in [
            ("http://localhost:8080/a?key=s3cret", "localhost", 8080, "http://localhost:8080/a?…"),
            ("https://shop.example.org", "shop.example.org", 443, "https://shop.example.org/"),
            ("http://[::1]/x", "::1", 80, "http://[::1]/x"),
            ("http://[::1]:99/x", "::1", 99, "http://[::1]:99/x"),
        ] {
            let read = Address::read(text).expect(text);
            assert_eq!((&*read.host, read.port, &*read.to_string()), (host, port, shown));
        }
        for text in [
            "shop.example.org/tasks",
            "ftp://shop.example.org",
            "http://",
            "http://me:s3cret@shop.example.org",
            "http://shop.example.org:70000/",
            "http://shop.example.org/a#b",
            "http://shop example.org",
            "",
        ] {
            let why = Address::read(text).expect_err(text);
            assert!(!why.contains("s3cret"), "{why}");
        }
    }
}
