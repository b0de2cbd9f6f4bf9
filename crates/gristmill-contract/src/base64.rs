//! Base64 (RFC 4648) for payloads that are not text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes as base64 with padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut three = [0u8; 3];
        for (to, from) in three.iter_mut().zip(chunk) {
            *to = *from;
        }
        let [a, b, c] = three;
        let group = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
        for position in 0..4 {
            let sextet = (group >> (18 - 6 * position)) & 0x3f;
            let letter = ALPHABET.get(sextet as usize).copied().unwrap_or(b'=');
            text.push(if position > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// The bytes of a text in base64, with all its padding or none; none when it is
/// something else, or when another text stands for the same bytes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let padded = text.len();
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 || (padded > text.len() && padded != text.len().next_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut group = 0u32;
        for letter in chunk {
            let sextet = ALPHABET.iter().position(|known| known == letter)?;
            group = group << 6 | u32::try_from(sextet).ok()?;
        }
        // Bits behind the last byte have to be none.
        if group & ((1 << (chunk.len() * 6 % 8)) - 1) != 0 {
            return None;
        }
        group <<= 6 * (4 - chunk.len());
        let [_, a, b, c] = group.to_be_bytes();
        bytes.extend([a, b, c].iter().take(chunk.len() * 6 / 8));
    }
    Some(bytes)
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
