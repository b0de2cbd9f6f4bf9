//! Base64 (RFC 4648) for payloads that are not text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes as base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
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
        }
    }
}
