//! Addresses on the web, as far as they are needed here: plain HTTP.

use std::fmt;
use std::str::FromStr;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The host's name or address, without brackets.
    pub host: String,
    /// The port, 80 unless said.
    pub port: u16,
    /// Path and query, from the slash on.
    pub path: String,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

impl Url {
    /// Host and port as a request names them.
    pub fn authority(&self) -> String {
        let Url { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("'{url}' cannot be fetched: {why}");
        if url.starts_with("https://") {
            return Err(wrong("this example speaks plain http only"));
        }
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong("it is not an http address"))?;
        if url.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(wrong("there is a blank in it"));
        }
        let rest = rest.split('#').next().unwrap_or(rest);
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let path = if path.starts_with('?') { format!("/{path}") } else { path.to_owned() };
        let (host, port) = match authority.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority
                .split_once(':')
                .map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port =
            port.map_or(Ok(80), str::parse).map_err(|_| wrong("its port is not a number"))?;
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        Ok(Url { host: host.to_owned(), port, path })
    }
}

/// What a link on a page means.
pub fn join(base: &str, link: &str) -> String {
    let has_scheme = link.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    if has_scheme {
        return link.to_owned();
    }
    let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
    if let Some(elsewhere) = link.strip_prefix("//") {
        return format!("{scheme}://{elsewhere}");
    }
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if link.starts_with('/') {
        return format!("{scheme}://{host}{link}");
    }
    if link.starts_with(['?', '#']) || link.is_empty() {
        return format!("{scheme}://{host}{path}{link}");
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut folders: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let mut link = link;
    loop {
        if let Some(rest) = link.strip_prefix("./") {
            link = rest;
        } else if let Some(rest) = link.strip_prefix("../") {
            folders.pop();
            link = rest;
        } else {
            break;
        }
    }
    let folder: String = folders.iter().map(|part| format!("/{part}")).collect();
    format!("{scheme}://{host}{folder}/{link}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |url: &str| url.parse::<Url>().map(|url| url.to_string());
        for (url, expected) in [
            ("http://a", "http://a:80/"),
            ("http://a:81/x?y=1#z", "http://a:81/x?y=1"),
            ("http://a?q", "http://a:80/?q"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
        ] {
            assert_eq!(read(url), Ok(expected.to_owned()));
        }
        let bad =
            ["", "a", "https://a/", "http://", "http://:80/", "http://a:x/", "http://a/\r\nb"];
        for url in bad {
            assert!(read(url).is_err(), "{url}");
        }
    }

    #[test]
    fn links_are_joined() {
        let base = "http://a:8/b/c?d";
        for (link, expected) in [
            ("http://x/y", "http://x/y"),
            ("mailto:a@example.com", "mailto:a@example.com"),
            ("//x/y", "http://x/y"),
            ("/x", "http://a:8/x"),
            ("x", "http://a:8/b/x"),
            ("./x", "http://a:8/b/x"),
            ("../x", "http://a:8/x"),
            ("../../x", "http://a:8/x"),
            ("?x", "http://a:8/b/c?x"),
        ] {
            assert_eq!(join(base, link), expected, "{link}");
        }
        assert_eq!(join("http://a", "x"), "http://a/x");
    }
}
