//! What errors have in common: a text with its numbers, ids and quoted words folded, so
//! that failures of one cause are counted as one.
//!
//! Only the line that says what went wrong is looked at: of a stack trace the message,
//! which Python and Java say last and Ruby and Node first.

/// Most characters a shape keeps.
const LONGEST: usize = 200;

/// Shortest run of hexadecimal digits, with digits and letters in it, that is an id.
const HEX_ID: usize = 8;

/// The shape of an error: two failures with the same one most likely have one cause.
///
/// Numbers and ids become `#`, what stands in quotes becomes `…` between them, blanks
/// become one. A shape has itself as its shape.
///
/// ```
/// use gristmill::error_shape;
/// assert_eq!(error_shape("no user 'ada' (after 12 ms)"), "no user '…' (after # ms)");
/// assert_eq!(error_shape("Traceback:\n  File \"a.py\", line 3\nKeyError: 'to'"), "KeyError: '…'");
/// ```
#[must_use]
pub fn error_shape(error: &str) -> String {
    let mut shape = String::new();
    let mut rest = headline(error);
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (said, read) = if let Some((last, read)) = quoted(before, first, rest) {
            (format!("{first}…{last}"), read)
        } else if first.is_ascii_alphanumeric() {
            let read = rest.find(|c: char| !is_of_a_word(c)).unwrap_or(rest.len());
            (word(rest.get(..read).unwrap_or_default()), read)
        } else if first.is_whitespace() || first.is_control() {
            let said = if before == ' ' { "" } else { " " };
            (said.to_owned(), first.len_utf8())
        } else {
            (first.to_string(), first.len_utf8())
        };
        shape.push_str(&said);
        before = shape.chars().next_back().unwrap_or(' ');
        rest = rest.get(read..).unwrap_or_default();
    }
    let shape = one_for_many(shape.trim());
    match shape.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            format!("{}…", shape.get(..end).unwrap_or_default().trim_end_matches('…'))
        }
        None => shape,
    }
}

/// The line that says what went wrong: the last that is no frame of a stack.
fn headline(error: &str) -> &str {
    let said = || error.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    said().find(|line| !is_frame(line)).or_else(|| said().next()).unwrap_or_default()
}

/// Whether a line tells where, not what.
fn is_frame(line: &str) -> bool {
    let begins = |word: &str| line.starts_with(word);
    begins("at ")
        || (begins("from ") && line.contains(':'))
        || begins("Node.js v")
        || begins("note: run with `RUST_BACKTRACE")
        || (begins("... ") && line.ends_with(" more"))
        || (begins("File \"") && line.contains(", line "))
        || line.chars().all(|c| matches!(c, '^' | '~' | ' ' | '{' | '}'))
}

const fn is_of_a_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// The closing quote, and how many bytes stand in quotes at the beginning of `rest`,
/// with the quotes. An apostrophe within a word opens none.
fn quoted(before: char, first: char, rest: &str) -> Option<(char, usize)> {
    let closes = |c: char| c == first || (first == '`' && c == '\'');
    if !matches!(first, '\'' | '"' | '`') || before.is_alphanumeric() {
        return None;
    }
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        let within = chars.peek().is_some_and(|(_, after)| after.is_alphanumeric());
        if closes(c) && !within {
            return Some((c, at + c.len_utf8()));
        }
    }
    None
}

/// A word with its numbers folded; one that is an id is `#` as a whole.
fn word(word: &str) -> String {
    if is_id(word) {
        return "#".to_owned();
    }
    let parts = word.split_inclusive(['-', '_']);
    let folded = parts.map(|part| {
        let (part, sign) = match part.strip_suffix(['-', '_']) {
            Some(bare) => (bare, part.get(bare.len()..).unwrap_or_default()),
            None => (part, ""),
        };
        if is_id(part) { format!("#{sign}") } else { format!("{}{sign}", digits(part)) }
    });
    folded.collect()
}

/// A UUID, a number in hexadecimal, or a long run of its digits.
fn is_id(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let mixed = word.bytes().any(|b| b.is_ascii_digit()) && word.len() >= HEX_ID;
    let is_uuid = lengths == [8, 4, 4, 4, 12] && word.split('-').all(is_hex);
    is_uuid || word.strip_prefix("0x").is_some_and(is_hex) || (mixed && is_hex(word))
}

/// Each run of digits as one `#`, and the end of an instant with it.
fn digits(word: &str) -> String {
    let word = match word.strip_suffix('Z') {
        Some(instant) if instant.ends_with(|c: char| c.is_ascii_digit()) => instant,
        _ => word,
    };
    let mut folded = String::with_capacity(word.len());
    for c in word.chars() {
        if !c.is_ascii_digit() {
            folded.push(c);
        } else if !folded.ends_with('#') {
            folded.push('#');
        }
    }
    folded
}

/// Numbers in a row as one, so that lists, dates and addresses are alike whatever their
/// length.
fn one_for_many(shape: &str) -> String {
    let mut folded = String::with_capacity(shape.len());
    let mut between = String::new();
    for c in shape.chars() {
        let joins = matches!(c, '.' | ',' | ':' | '-' | '/' | ' ' | '+' | 'T');
        if folded.ends_with('#') && joins {
            between.push(c);
            continue;
        }
        if c != '#' || !folded.ends_with('#') {
            folded.push_str(&between);
            folded.push(c);
        }
        between.clear();
    }
    folded.push_str(&between);
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_task_to_task_is_folded() {
        for (error, shape) in [
            ("connect to 10.0.0.7:5432: timed out", "connect to #: timed out"),
            ("user 42 has no address", "user # has no address"),
            ("user 550e8400-e29b-41d4-a716-446655440000 is gone", "user # is gone"),
            ("at 0x7ffe12ab: bad", "at #: bad"),
            ("commit deadbeef01 not found", "commit # not found"),
            ("no facade", "no facade"),
            ("worker-7 said \"no\" to `x`", "worker-# said \"…\" to `…`"),
            ("can't open 'a b' or it's gone", "can't open '…' or it's gone"),
            ("2026-11-18T09:00:00Z late", "# late"),
            ("ids 1, 2, 3 are twice", "ids # are twice"),
            ("took 1.5s of 30s", "took #s of #s"),
            ("a\tb   c", "a b c"),
            ("", ""),
            ("5", "#"),
            ("it's 'odd", "it's 'odd"),
        ] {
            assert_eq!(error_shape(error), shape, "{error}");
            assert_eq!(error_shape(shape), shape, "a shape is its own: {shape}");
        }
    }

    #[test]
    fn of_a_stack_the_message_counts() {
        for (error, shape) in [
            (
                "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\nKeyError: 'to'\n",
                "KeyError: '…'",
            ),
            (
                "Error: no host\n    at a (x.js:3:4)\n    at b (x.js:9:1)\n\nNode.js v22.1.0\n",
                "Error: no host",
            ),
            (
                "java.io.IOException: a\n\tat A.b(A.java:3)\nCaused by: X: refused\n\tat C.d(C.java:1)\n\t... 3 more",
                "Caused by: X: refused",
            ),
            (
                "a.rb:3:in `f': boom (RuntimeError)\n\tfrom a.rb:9:in `<main>'",
                "a.rb:#:in `…': boom (RuntimeError)",
            ),
            ("at home", "at home"),
        ] {
            assert_eq!(error_shape(error), shape, "{error}");
        }
    }

    #[test]
    fn a_long_one_is_cut_and_stays_its_own_shape() {
        let shape = error_shape(&"word ".repeat(200));
        assert_eq!(shape.chars().count(), LONGEST + 1);
        assert_eq!(error_shape(&shape), shape);
    }
}
