//! What a person reads on a page.

use crate::markup::{Piece, pieces};

/// Elements whose text is not what the page is about.
const AROUND: &[&str] = &["head", "nav", "header", "footer", "noscript", "form"];
/// Elements that do not break a line.
const INLINE: &[&str] =
    &["a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup", "u"];

/// The text of a page or of a part of one, in lines.
pub(crate) fn text(html: &str) -> String {
    let mut words = String::new();
    let mut around: Vec<String> = Vec::new();
    for piece in pieces(html) {
        match piece {
            Piece::Open { name, .. } => {
                if !INLINE.contains(&name.as_str()) {
                    words.push('\n');
                }
                if AROUND.contains(&name.as_str()) {
                    around.push(name);
                }
            }
            Piece::Close(name) => {
                if !INLINE.contains(&name.as_str()) {
                    words.push('\n');
                }
                if let Some(at) = around.iter().rposition(|open| *open == name) {
                    around.truncate(at);
                }
            }
            Piece::Text(text) if around.is_empty() => words.push_str(&text),
            Piece::Text(_) => {}
        }
    }
    tidy(&words)
}

/// One blank between words, one line break between lines.
pub(crate) fn tidy(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_read_is_left() {
        let page = "<html><head><title>No</title></head><body><nav><a>Home</a></nav>
            <p>One <b>bold</b>   word.</p><p>Two&nbsp;&amp; more</p><footer>no</footer></body>";
        assert_eq!(text(page), "One bold word.\nTwo & more");
        assert_eq!(text("plain"), "plain");
        assert_eq!(text("<nav>never closed"), "");
    }
}
