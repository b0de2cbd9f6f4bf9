//! Tags and text of a page, one after the other, as html5ever reads them: as lenient
//! as browsers are, and with all entities. Nothing here needs a tree.

use std::cell::{Cell, RefCell};

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// A piece of a page. Names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// `<name href="…">`
    Open { name: String, href: Option<String> },
    /// `</name>`
    Close(String),
    /// Text for readers.
    Text(String),
}

/// Reads a page.
pub(crate) fn pieces(page: &str) -> Vec<Piece> {
    let input = BufferQueue::default();
    input.push_back(page.into());
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    // It stops only for scripts that are to run, and the sink asks for none.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.pieces.into_inner()
}

/// Gathers the pieces.
#[derive(Default)]
struct Sink {
    pieces: RefCell<Vec<Piece>>,
    /// In a script or the like, up to the next tag, which is its end.
    hidden: Cell<bool>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => return self.tag(&tag),
            Token::CharacterTokens(text) if !self.hidden.get() => {
                let mut pieces = self.pieces.borrow_mut();
                match pieces.last_mut() {
                    Some(Piece::Text(before)) => before.push_str(&text),
                    _ => pieces.push(Piece::Text(text.to_string())),
                }
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Sink {
    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        self.hidden.set(false);
        let name = tag.name.to_string();
        // Which elements hold no markup is for a tree to know: we have none.
        let raw = match name.as_str() {
            "script" => Some(RawKind::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
            "title" | "textarea" => Some(RawKind::Rcdata),
            _ => None,
        };
        let piece = match tag.kind {
            TagKind::EndTag => Piece::Close(name),
            TagKind::StartTag => {
                let href = tag.attrs.iter().find(|attribute| &*attribute.name.local == "href");
                Piece::Open { name, href: href.map(|href| href.value.to_string()) }
            }
        };
        self.pieces.borrow_mut().push(piece);
        match raw {
            Some(raw) if tag.kind == TagKind::StartTag => {
                self.hidden.set(raw != RawKind::Rcdata);
                TokenSinkResult::RawData(raw)
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<String> {
        let texts = pieces(page).into_iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn tags_links_and_text_come_apart() {
        let found = pieces("<!doctype html><A b=c href='x>y&amp;z'>hi &rsquo; &#65;</a ><br/>");
        let href = Some("x>y&z".to_owned());
        assert_eq!(found[0], Piece::Open { name: "a".to_owned(), href });
        assert_eq!(found[1], Piece::Text("hi ’ A".to_owned()));
        assert_eq!(found[2], Piece::Close("a".to_owned()));
        assert_eq!(found[3], Piece::Open { name: "br".to_owned(), href: None });
    }

    #[test]
    fn what_is_broken_is_text_or_ends() {
        assert_eq!(texts("1 < 2 & <3"), ["1 < 2 & <3"]);
        assert_eq!(texts("a<!-- b"), ["a"]);
        for odd in ["", "<", "<>", "</", "<!", "&", "&;", "<a =>", "<p title='", "<é é=é>é</É>"]
        {
            pieces(odd);
        }
    }

    #[test]
    fn scripts_are_not_text() {
        let page =
            "<script>if (a < b) { '</p>' }</SCRIPT>after<style>p{}</style><title>a<b</title>";
        assert_eq!(texts(page), ["after", "a<b"]);
    }
}
