//! Addresses on the web.

use url::Url;

/// What a link on a page means.
pub fn join(base: &str, link: &str) -> String {
    let joined = Url::parse(base).and_then(|base| base.join(link));
    joined.map_or_else(|_| link.to_owned(), String::from)
}

/// Whether this can be fetched.
///
/// # Errors
/// When it cannot, and why.
pub fn check(url: &str) -> Result<(), String> {
    let wrong = |why: &str| format!("'{url}' cannot be fetched: {why}");
    let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    match parsed.scheme() {
        "http" | "https" if !url.contains(char::is_whitespace) => Ok(()),
        "http" | "https" => Err(wrong("there is a blank in it")),
        _ => Err(wrong("it begins neither with http:// nor with https://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        for good in ["http://a", "https://a:81/x?y=1#z", "http://[::1]:8080/"] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["", "a", "ftp://a/", "http://", "http://:80/", "http://a:x/", "http://a/\r\nb"]
        {
            assert!(check(bad).is_err(), "{bad}");
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
