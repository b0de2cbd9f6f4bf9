//! Quoted-printable: any text in short lines of ASCII, still readable.

use std::fmt::Write as _;

/// Longest line, the soft break included.
const LINE: usize = 76;
/// Most bytes in one encoded word of a header, each of which may take three.
const WORD: usize = 20;

fn push_byte(line: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(line, "={byte:02X}");
}

/// A text as the body of a mail.
pub(crate) fn body(text: &str) -> String {
    let mut encoded = String::new();
    for line in text.lines() {
        let mut width = 0;
        let end = line.len();
        for (at, byte) in line.bytes().enumerate() {
            let plain = matches!(byte, b' '..=b'~' | b'\t') && byte != b'=';
            // A blank at the end of a line gets lost on the way.
            let plain = plain && !(at + 1 == end && matches!(byte, b' ' | b'\t'));
            let needed = if plain { 1 } else { 3 };
            if width + needed >= LINE {
                encoded.push_str("=\r\n");
                width = 0;
            }
            if plain {
                encoded.push(char::from(byte));
            } else {
                push_byte(&mut encoded, byte);
            }
            width += needed;
        }
        encoded.push_str("\r\n");
    }
    encoded
}

/// A text as the value of a header. No line break can get into it.
pub(crate) fn header(text: &str) -> String {
    if text.chars().all(|c| matches!(c, ' '..='~')) && !text.contains("=?") && text.len() < LINE {
        return text.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let mut used = WORD;
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        // A character must not be torn between two words.
        if used + c.len_utf8() > WORD {
            words.push(String::new());
            used = 0;
        }
        let Some(word) = words.last_mut() else { continue };
        used += c.len_utf8();
        match c {
            ' ' => word.push('_'),
            '=' | '?' | '_' | '\u{7f}'.. => {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_byte(word, byte));
            }
            _ => word.push(c),
        }
    }
    let words: Vec<String> = words.iter().map(|word| format!("=?utf-8?q?{word}?=")).collect();
    words.join("\r\n ")
}

/// The text of a quoted-printable body, for whoever receives one.
pub fn decode(body: &str) -> String {
    let mut bytes = Vec::new();
    let joined = body.replace("=\r\n", "");
    let mut rest = joined.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'=', [high, low, others @ ..]) => {
                let hex = [*high, *low];
                let hex =
                    std::str::from_utf8(&hex).ok().and_then(|h| u8::from_str_radix(h, 16).ok());
                bytes.push(hex.unwrap_or(b'='));
                rest = if hex.is_some() { others } else { after };
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_and_lines_are_short() {
        for text in [
            "plain\n",
            "blank at the end \nand = and é and …\n",
            &format!("{}\n", "é".repeat(200)),
            &format!("{}\n", "a".repeat(75)),
            "\n.\n..dots\n",
        ] {
            let encoded = body(text);
            assert!(encoded.lines().all(|line| line.len() <= LINE && line.is_ascii()), "{encoded}");
            assert_eq!(decode(&encoded), *text);
        }
    }

    #[test]
    fn a_header_stays_one_header() {
        assert_eq!(header("Plain text"), "Plain text");
        assert_eq!(header("a\r\nBcc: x"), "=?utf-8?q?a__Bcc:_x?=");
        let long = header(&"é".repeat(100));
        assert!(long.split("\r\n ").all(|word| word.len() <= 75), "{long}");
        assert!(!header("=?utf-8?q?fake?=").starts_with("=?utf-8?q?fake"));
    }
}
