//! Rust source cut into tokens, just finely enough for the checkers.
//!
//! It tells words, punctuation, string literals and comments apart, so that a
//! checker never takes a comment for code or a brace in a string for a brace.
//! It knows nothing of grammar and reads any text without failing.

/// One token and the line it starts on, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, keyword or number.
    Word(String),
    /// A string literal of any sort, as written between its quotes.
    Str(String),
    /// A comment with its opening slashes; a block comment is one token.
    Comment(String),
    /// Any other character.
    Mark(char),
}

impl Token {
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn string(&self) -> Option<&str> {
        match &self.kind {
            Kind::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn comment(&self) -> Option<&str> {
        match &self.kind {
            Kind::Comment(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the token is this word or this one character.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        match &self.kind {
            Kind::Word(word) => word == wanted,
            Kind::Mark(mark) => wanted.chars().eq([*mark]),
            _ => false,
        }
    }
}

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut found = Vec::new();
    while let Some(first) = reader.peek(0) {
        let line = reader.line;
        if let Some(kind) = reader.token(first) {
            found.push(Token { kind, line });
        }
    }
    found
}

/// The code tokens only.
pub(crate) fn code(text: &str) -> Vec<Token> {
    tokens(text).into_iter().filter(|token| token.comment().is_none()).collect()
}

/// Whether the tokens begin with these words and marks.
pub(crate) fn begins(tokens: &[Token], wanted: &[&str]) -> bool {
    tokens.len() >= wanted.len() && tokens.iter().zip(wanted).all(|(token, want)| token.is(want))
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.chars().nth(ahead)
    }

    /// Takes so many bytes (up to the end) and counts the lines in them.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Takes up to and without `end`, then drops `end`.
    fn until(&mut self, end: &str) -> String {
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let taken = self.take(length).to_owned();
        self.take(end.len());
        taken
    }

    /// Reads one token; white space, char literals and lifetimes give none.
    fn token(&mut self, first: char) -> Option<Kind> {
        if self.rest.starts_with("//") {
            let length = self.rest.find('\n').unwrap_or(self.rest.len());
            return Some(Kind::Comment(self.take(length).to_owned()));
        }
        if self.rest.starts_with("/*") {
            return Some(Kind::Comment(self.block_comment()));
        }
        if let Some(text) = self.string() {
            return Some(Kind::Str(text));
        }
        if first == '\'' {
            self.quote();
            return None;
        }
        if is_word(first) {
            let length = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
            return Some(Kind::Word(self.take(length).to_owned()));
        }
        self.take(first.len_utf8());
        (!first.is_whitespace()).then_some(Kind::Mark(first))
    }

    /// Block comments nest.
    fn block_comment(&mut self) -> String {
        let mut text = String::new();
        let mut depth = 0;
        while let Some(next) = self.peek(0) {
            let step = if self.rest.starts_with("/*") {
                depth += 1;
                2
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                2
            } else {
                next.len_utf8()
            };
            text.push_str(self.take(step));
            if depth == 0 {
                break;
            }
        }
        text
    }

    /// A string literal with any prefix (`r`, `b`, `br`, `c`, `cr`), if one is next.
    fn string(&mut self) -> Option<String> {
        let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
            let after = self.rest.strip_prefix(*prefix);
            after.is_some_and(|after| {
                let quoted =
                    if prefix.ends_with('r') { after.trim_start_matches('#') } else { after };
                quoted.starts_with('"')
            })
        })?;
        self.take(prefix.len());
        if prefix.ends_with('r') {
            let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
            self.take(hashes + 1);
            return Some(self.until(&format!("\"{}", "#".repeat(hashes))));
        }
        self.take(1);
        let mut text = String::new();
        while let Some(next) = self.peek(0) {
            if next == '"' {
                self.take(1);
                break;
            }
            let escaped = if next == '\\' { self.peek(1).map_or(0, char::len_utf8) } else { 0 };
            text.push_str(self.take(next.len_utf8() + escaped));
        }
        Some(text)
    }

    /// A char literal is dropped whole; of a lifetime only the quote is.
    fn quote(&mut self) {
        self.take(1);
        if self.peek(0) == Some('\\') {
            let escaped = self.peek(1).map_or(0, char::len_utf8);
            self.take(1 + escaped);
            self.until("'");
        } else if self.peek(1) == Some('\'') {
            let length = self.peek(0).map_or(0, char::len_utf8);
            self.take(length + 1);
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn comments_are_not_code() {
    let words: Vec<String> = code("a // mod b;\n/* c /* d */ e */ f")
        .iter()
        .filter_map(|token| token.word().map(str::to_owned))
        .collect();
    assert_eq!(words, ["a", "f"]);
}

#[test]
fn strings_of_every_sort_are_found_with_their_line() {
    let text =
        "f(\"one \\\" // two\");\nr#\"three \"quoted\"\"#;\nb\"four\"; '\"'; '\\''; \"five\"";
    let strings: Vec<(usize, String)> = tokens(text)
        .iter()
        .filter_map(|token| token.string().map(|text| (token.line, text.to_owned())))
        .collect();
    let wanted = [(1, "one \\\" // two"), (2, "three \"quoted\""), (3, "four"), (3, "five")];
    assert_eq!(strings, wanted.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn lifetimes_and_raw_words_do_not_open_anything() {
    let found = code("fn a<'a>(r#mod: &'a str, x: char) { '{'; \"s\" }");
    assert!(found.iter().any(|token| token.string() == Some("s")), "{found:?}");
    assert_eq!(found.iter().filter(|token| token.is("{")).count(), 1);
}

#[test]
fn unfinished_text_ends_quietly() {
    for text in ["\"open", "/* open", "r#\"open", "'", "b'\\"] {
        assert!(tokens(text).len() <= 2, "{text}");
    }
}
