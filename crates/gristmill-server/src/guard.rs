//! What may be asked at all: requests under a name of this machine, where only it is
//! served, and not from pages of other sites.
//!
//! A browser on this machine runs pages of strangers. Such a page can send a request
//! here, but not hide that it did (Origin, Sec-Fetch-Site), and if it makes its own
//! name point here, the request still carries that name (Host).

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, Uri};
use axum::response::Response;

use crate::problem::{Answer, BAD_REQUEST, Problem, WRONG_HOST, WRONG_ORIGIN};

/// Whom a port serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serves {
    /// This machine: under its own names only.
    Ourselves,
    /// Others too, under whatever name they know it. Everybody shows a token there, which
    /// a page that makes its own name point here does not have.
    Others,
}

/// Checks a request's head.
pub(crate) fn check(
    serves: Serves,
    secure: bool,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> Answer<()> {
    let mut hosts = headers.get_all(header::HOST).iter();
    // An address in the request line wins over the header (RFC 9112), so it is the one
    // to look at.
    let named = match (uri.authority(), hosts.next()) {
        (Some(authority), _) => authority.as_str(),
        (None, Some(host)) => host.to_str().unwrap_or_default(),
        (None, None) => return Err(Problem::new(&BAD_REQUEST, "the request has no Host header")),
    };
    if hosts.next().is_some() {
        return Err(Problem::new(&BAD_REQUEST, "the request has two Host headers"));
    }
    if named.is_empty() {
        return Err(Problem::new(&WRONG_HOST, "the Host header names nobody"));
    }
    if serves == Serves::Ourselves && !is_ours(named) {
        return Err(Problem::new(&WRONG_HOST, "the Host header does not name this machine"));
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let http = (!secure).then(|| origin.strip_prefix("http://")).flatten();
        // What stands between may have taken the encryption off.
        let https =
            (secure || serves == Serves::Others).then(|| origin.strip_prefix("https://")).flatten();
        if http.or(https) != Some(named) {
            return Err(Problem::new(&WRONG_ORIGIN, "the Origin header names another site"));
        }
    }
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let reads = method == Method::GET || method == Method::HEAD;
    match site {
        None | Some(b"same-origin" | b"none") => Ok(()),
        // A link to a page of ours that somebody follows.
        Some(_) if reads && is_navigation(headers) => Ok(()),
        Some(_) => Err(Problem::new(&WRONG_ORIGIN, "the request comes from another site's page")),
    }
}

fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
        && headers.get("sec-fetch-dest").is_some_and(|dest| dest == "document")
}

/// Whether this is a name of the machine itself, with or without a port.
fn is_ours(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, rest)) => {
            let port = rest.strip_prefix(':');
            if !rest.is_empty() && port.is_none() {
                return false;
            }
            (inner, port)
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether it was asked under a name that is not this machine's own. A browser that is
/// told to encrypt always does so for the whole name, whichever port: that must not be
/// said of `localhost`, where other programs are.
pub(crate) fn is_named_by_others(uri: &Uri, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let named = uri.authority().map(|authority| authority.as_str()).or(host);
    named.is_some_and(|named| !is_ours(named))
}

/// Has browsers come encrypted from now on.
pub(crate) fn mark_secure(response: &mut Response) {
    let value = HeaderValue::from_static("max-age=31536000");
    response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, value);
}

/// Headers of every answer: nothing of it is a page to frame, to guess at, or to
/// keep.
pub(crate) fn mark(response: &mut Response) {
    const MARKS: [(&str, &str); 4] = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
             form-action 'none'",
        ),
    ];
    let headers = response.headers_mut();
    for (name, value) in MARKS {
        let name = HeaderName::from_static(name);
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, headers: &[(&'static str, &str)]) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), value.parse().expect("a value"));
        }
        let uri = Uri::from_static("/v1");
        check(Serves::Ourselves, false, (method, &uri, &map)).err().map(|problem| problem.code())
    }

    #[test]
    fn others_may_call_it_what_they_like() {
        let asked = |headers: &[(&'static str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(HeaderName::from_static(name), value.parse().expect("a value"));
            }
            let uri = Uri::from_static("/v1");
            check(Serves::Others, false, (&Method::POST, &uri, &map))
                .err()
                .map(|problem| problem.code())
        };
        let host = ("host", "queues.internal:4747");
        assert_eq!(asked(&[host]), None);
        assert_eq!(asked(&[host, ("origin", "https://queues.internal:4747")]), None);
        assert_eq!(asked(&[host, ("origin", "https://evil.example")]), Some("wrong_origin"));
        assert_eq!(asked(&[host, ("sec-fetch-site", "cross-site")]), Some("wrong_origin"));
        assert_eq!(asked(&[("host", "")]), Some("wrong_host"));
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:4747", "127.1.2.3", "[::1]:9", "[::1]"]
        {
            assert_eq!(asked(&Method::GET, &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:4747",
            "localhost.evil.example",
            "10.0.0.1",
            "[::2]",
            "[::1]x",
            "localhost:x",
            "localhost:1:2",
            "",
        ] {
            assert_eq!(asked(&Method::GET, &[("host", host)]), Some("wrong_host"), "{host}");
        }
        assert_eq!(asked(&Method::GET, &[]), Some("bad_request"));
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(asked(&Method::GET, &two), Some("bad_request"));
    }

    #[test]
    fn pages_of_others_are_refused() {
        let host = ("host", "localhost:4747");
        for (origin, wanted) in [
            ("http://localhost:4747", None),
            ("http://localhost:3000", Some("wrong_origin")),
            ("https://localhost:4747", Some("wrong_origin")),
            ("http://evil.example", Some("wrong_origin")),
            ("null", Some("wrong_origin")),
        ] {
            assert_eq!(asked(&Method::POST, &[host, ("origin", origin)]), wanted, "{origin}");
        }
        let cross = ("sec-fetch-site", "cross-site");
        assert_eq!(asked(&Method::GET, &[host, cross]), Some("wrong_origin"));
        let link = [host, cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert_eq!(asked(&Method::GET, &link), None);
        assert_eq!(asked(&Method::POST, &link), Some("wrong_origin"));
    }
}
