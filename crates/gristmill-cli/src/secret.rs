//! Words that somebody typed and that are told back to them: a store's URL in
//! the wrong place is not known as one, and its password must not be told.

use std::borrow::Cow;

/// What stands for what is not told.
const HIDDEN: &str = "…";

/// A sentence about what was typed, without what may be a password in it: a URL
/// with an `@` or a `?` is not told.
pub(crate) fn hidden(sentence: &str) -> String {
    let lines: Vec<Cow<'_, str>> = sentence.split('\n').map(without_url).collect();
    lines.join("\n")
}

fn without_url(line: &str) -> Cow<'_, str> {
    let Some((before, url)) = line.split_once("://") else { return Cow::Borrowed(line) };
    let Some(last) = url.rfind(['@', '?']) else { return Cow::Borrowed(line) };
    let rest = url.get(last..).unwrap_or_default();
    let ends = |c: char| c.is_whitespace() || c == '\'' || c == '"';
    let after = rest.find(ends).and_then(|end| rest.get(end..)).unwrap_or_default();
    Cow::Owned(format!("{before}://{HIDDEN}{after}"))
}

/// A configuration as mistakes in it show its lines: without the store's URL,
/// and without any other.
pub(crate) fn hidden_in_config(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut in_store = false;
    for line in text.lines() {
        let begins = line.trim_start_matches([' ', '{', '"', '\'']).starts_with("store");
        // A value may stand on the lines below its name.
        in_store = begins || (in_store && (line.is_empty() || line.starts_with([' ', '\t'])));
        let from = match (begins, in_store) {
            (true, _) => line.find(':').map(|colon| colon + 1),
            (false, true) => Some(0),
            (false, false) => line.find("://").map(|at| at + "://".len()),
        };
        // What requests are signed with, wherever it stands.
        let named = line.find("secret:").map(|at| at + "secret:".len());
        let from = [from, named, line.find("whsec_")].into_iter().flatten().min();
        // As wide as it was, so that what is underlined stays in its place.
        for (at, c) in line.char_indices() {
            let is_secret = from.is_some_and(|from| at >= from) && !c.is_whitespace();
            shown.push(if is_secret { '*' } else { c });
        }
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_in_the_wrong_place_is_not_told() {
        for (said, shown) in [
            ("no command 'postgres://me:s3cret@h/d'; see", "no command 'postgres://…'; see"),
            ("a postgres://me:s3 cret@h/d?x b", "a postgres://… b"),
            ("a postgres://h/d?password=s3cret b", "a postgres://… b"),
            ("one\ntwo http://me:s3cret@h", "one\ntwo http://…"),
            ("use sqlite://PATH or postgres://HOST", "use sqlite://PATH or postgres://HOST"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(hidden(said), shown);
        }
    }

    #[test]
    fn lines_of_a_configuration_are_told_without_urls() {
        let text = "store: host=h password=s3cret\nqueues:\n  - {name: a, exec: x}\n";
        let shown = "store: ****** ***************\nqueues:\n  - {name: a, exec: x}\n";
        assert_eq!(hidden_in_config(text), shown);
        for text in [
            "store:\n  postgres://me:s3cret@h\n\n  s3cret\nqueues: 1",
            "{store: 'postgres://me:s3cret@h', queues: []}",
            "\"store\" : s3cret",
            "queues: [{name: a, exec: curl https://me:s3cret@h}]",
            "queues:\n  - name: a\n    secret: s3cret",
            "queues:\n  - name: a\n    secret:\n      whsec_s3cret",
            "queues: [{name: a, secret: s3cret, http: x}]",
        ] {
            assert!(!hidden_in_config(text).contains("s3cret"), "{text}");
        }
    }
}
