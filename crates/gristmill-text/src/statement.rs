//! One statement out of a file of several: a store's SQL lies in a few files, where
//! each statement has a heading, and is taken apart while compiling.

/// What a line begins with that names the statement below it.
const HEADING: &str = "-- name: ";

/// The statement below `-- name: NAME` in the text of a file, up to the next
/// heading. To be called while compiling (`const { statement(…) }`): there a name
/// that the file does not have stops the build.
#[must_use]
#[expect(clippy::panic, reason = "while compiling, a misspelt name is a compile error")]
pub const fn statement(file: &'static str, name: &str) -> &'static str {
    let mut rest = file;
    while !rest.is_empty() {
        let (line, below) = first_line(rest);
        if let Some(named) = heading(line)
            && is_same(named, name.as_bytes())
        {
            return until_heading(below);
        }
        rest = below;
    }
    panic!("the file has no statement of this name");
}

/// The place of a name in a list of them, such as a statement's columns. To be called
/// while compiling, as [`statement`] is.
#[must_use]
#[expect(clippy::panic, reason = "while compiling, a misspelt name is a compile error")]
pub const fn position(names: &[&str], name: &str) -> usize {
    let (mut names, mut place) = (names, 0);
    while let [first, rest @ ..] = names {
        if is_same(first.as_bytes(), name.as_bytes()) {
            return place;
        }
        (names, place) = (rest, place + 1);
    }
    panic!("the statement has none of this name");
}

/// The first line with its end, and what follows.
const fn first_line(text: &str) -> (&str, &str) {
    let mut bytes = text.as_bytes();
    let mut length = 0;
    while let [byte, rest @ ..] = bytes {
        length += 1;
        if *byte == b'\n' {
            break;
        }
        bytes = rest;
    }
    text.split_at(length)
}

/// The name that a line gives to what is below it.
const fn heading(line: &str) -> Option<&[u8]> {
    let (mut line, mut prefix) = (line.as_bytes(), HEADING.as_bytes());
    while let [wanted, more @ ..] = prefix {
        match line {
            [byte, rest @ ..] if *byte == *wanted => (line, prefix) = (rest, more),
            _ => return None,
        }
    }
    Some(line.trim_ascii())
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if *a != *b {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

/// The lines up to the next heading, without empty ones at their end.
const fn until_heading(text: &str) -> &str {
    let (mut rest, mut seen, mut length) = (text, 0, 0);
    while !rest.is_empty() {
        let (line, below) = first_line(rest);
        if heading(line).is_some() {
            break;
        }
        seen += line.len();
        if !line.trim_ascii().is_empty() {
            length = seen;
        }
        rest = below;
    }
    text.split_at(length).0
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
-- What these are.

-- name: one
-- A comment of its own, which is sent along.
SELECT 1;

-- name: other
SELECT 'a
-- b';


-- name: one_more
SELECT 3";

    #[test]
    fn each_is_found_by_its_whole_name() {
        const ONE: &str = statement(FILE, "one");
        assert_eq!(ONE, "-- A comment of its own, which is sent along.\nSELECT 1;\n");
        assert_eq!(statement(FILE, "other"), "SELECT 'a\n-- b';\n");
        assert_eq!(statement(FILE, "one_more"), "SELECT 3");
    }

    #[test]
    fn names_have_their_places() {
        assert_eq!(position(&["id", "ids"], "ids"), 1);
    }

    #[test]
    #[should_panic(expected = "none of this name")]
    fn a_place_that_is_not_there_is_told() {
        let _ = position(&["id"], "ids");
    }

    #[test]
    #[should_panic(expected = "no statement")]
    fn a_name_that_is_not_there_is_told() {
        let _ = statement(FILE, "on");
    }
}
