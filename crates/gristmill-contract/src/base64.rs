//! Base64 (RFC 4648) for payloads that are not text.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// The bytes as base64 with padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of a text in base64, with all its padding or none; none when it is
/// something else, or when another text stands for the same bytes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let engine = if text.ends_with('=') { STANDARD } else { STANDARD_NO_PAD };
    engine.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()));
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["Z", "Zg==Zg==", "Zm9v!", "Zm 9v", "äöü=", "AA=", "AB==", "AAB=", "AAA==", "="]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
