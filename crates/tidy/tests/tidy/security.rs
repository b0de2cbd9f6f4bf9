//! The page about security: each row names what shows it, and what it names exists.
//!
//! A name between backticks is a path when it has a slash, below the root or below the
//! server's crate, and a test when it is a sentence of small words: `one_that_is_slow`.

use std::collections::BTreeSet;

use crate::repo::{Finding, Repo, expect};
use crate::seeds::{cells, is_rule, names, test_functions};

const PAGE: &str = "docs/security.md";
/// Paths of the page stand below it unless they begin at the root.
const SERVER: &str = "crates/gristmill-server/";
const COLUMNS: &[&str] = &["risk", "what is done", "shown by"];

pub(crate) fn rows(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.get(PAGE) else {
        return vec![Finding::new(PAGE, 1, "the page is missing", "say what is guarded against")];
    };
    let tests: BTreeSet<String> = repo.with_ending("rs").flat_map(test_functions).collect();
    let mut findings = Vec::new();
    for (line, text) in page.lines() {
        for name in names(text) {
            let missing = match kind(name) {
                Kind::Path => !repo.has(name) && !repo.has(&format!("{SERVER}{name}")),
                Kind::Test => !tests.contains(name),
                Kind::Word => false,
            };
            if missing {
                let wrong = format!("there is no `{name}`");
                findings.push(Finding::new(PAGE, line, wrong, "name what exists"));
            }
        }
        let cells = cells(text);
        if cells.is_empty() || cells == COLUMNS || is_rule(text) {
            continue;
        }
        let shown = cells.get(2).map(|cell| names(cell)).unwrap_or_default();
        if !shown.iter().any(|name| kind(name) != Kind::Word) {
            findings.push(Finding::new(PAGE, line, "a row that nothing shows", "name a test"));
        }
    }
    findings
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Path,
    Test,
    Word,
}

fn kind(name: &str) -> Kind {
    let is_path = name.contains('/') && !name.starts_with('/') && !name.contains(' ');
    let is_sentence = name.matches('_').count() >= 2
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match (is_path, is_sentence) {
        (true, _) => Kind::Path,
        (_, true) => Kind::Test,
        _ => Kind::Word,
    }
}

#[test]
fn what_shows_nothing_or_is_not_there_is_caught() {
    let page = "| risk | what is done | shown by |\n|---|---|---|\n\
        | a | a header `x_y` at `/v1` | `one_that_is`, `tests/it/a.rs` |\n\
        | b | `crates/x/src/b.rs` | `one_that_is_gone` in `tests/it/gone.rs` |\n\
        | c | much | see above |\n";
    let repo = Repo::sample(&[
        (PAGE, page),
        ("crates/gristmill-server/tests/it/a.rs", "#[test]\nfn one_that_is() {}"),
        ("crates/x/src/b.rs", "fn one_that_is_gone() {}"),
    ]);
    let wanted = [
        ("docs/security.md:4", "there is no `one_that_is_gone`"),
        ("docs/security.md:4", "there is no `tests/it/gone.rs`"),
        ("docs/security.md:5", "a row that nothing shows"),
    ];
    expect(&rows(&repo), &wanted);
    expect(&rows(&Repo::sample(&[])), &[("docs/security.md:1", "missing")]);
}
