//! The page about the five systems: what it names must exist, and a row that
//! names nothing must say why.
//!
//! A name between backticks is a path when it has a slash or ends like a file,
//! a behaviour when it begins with `rule_` or `verb_`, and a test when it reads
//! `crate::file::test`. Of a word `in` a path, the file must have the word. The
//! first cell of a row tells what was asked and may name anything.

use crate::lexer::{Token, code};
use crate::repo::{File, Finding, Repo, expect};
use std::collections::BTreeSet;

const PAGE: &str = "docs/seeds.md";
const SYSTEMS: &[&str] =
    &["item-sync", "morning-deck", "ingredient-match", "offer-sync", "mail-service"];
const BEHAVIOURS: &str = "crates/gristmill-conformance/src/behaviour/";
const COLUMNS: &[&str] = &["what was asked", "where it lives", "shown by"];
/// How a cell begins that names nothing: by decision, for want of it, or
/// because there is nothing to build or to test.
const REASONS: &[&str] = &["differs:", "not yet:", "nothing:"];

pub(crate) fn rows(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.get(PAGE) else {
        return vec![Finding::new(PAGE, 1, "the page is missing", "account for the five systems")];
    };
    let mut findings = Vec::new();
    let tests = tests(repo);
    let behaviours = behaviours(repo);
    let mut system = None;
    let mut counts: Vec<(&str, usize)> = SYSTEMS.iter().map(|system| (*system, 0)).collect();
    for (line, text) in page.lines() {
        if let Some(title) = text.strip_prefix("## ") {
            system = counts.iter_mut().find(|(system, _)| *system == title.trim());
        }
        let cells = cells(text);
        let told =
            if cells.is_empty() { vec![text] } else { cells.iter().skip(1).copied().collect() };
        for name in told.iter().flat_map(|cell| names(cell)) {
            let missing = match kind(name) {
                Kind::Path => !repo.has(name),
                Kind::Behaviour => !behaviours.contains(name),
                Kind::Test => !tests.contains(name),
                Kind::Word => false,
            };
            if missing {
                let remedy = "name what exists, or say `not yet:`";
                findings.push(Finding::new(PAGE, line, format!("there is no `{name}`"), remedy));
            }
        }
        for (word, path) in told.iter().flat_map(|cell| words_in_files(cell)) {
            if repo.get(path).is_some_and(|file| !file.text.contains(word)) {
                let wrong = format!("`{word}` is not in {path}");
                findings.push(Finding::new(PAGE, line, wrong, "name the file that has it"));
            }
        }
        if cells.is_empty() || cells == COLUMNS || is_rule(text) {
            continue;
        }
        match &mut system {
            Some((_, count)) => *count += 1,
            None => continue,
        }
        findings.extend(row(line, &cells));
    }
    for (system, _) in counts.iter().filter(|(_, count)| *count == 0) {
        let wrong = format!("no row of {system}");
        findings.push(Finding::new(PAGE, 1, wrong, "give it a heading `## NAME` and a table"));
    }
    findings
}

/// What is wrong with the form of a row.
fn row(line: usize, cells: &[&str]) -> Option<Finding> {
    let finding = |wrong: &str, remedy: &str| Some(Finding::new(PAGE, line, wrong, remedy));
    let [asked, lives, shown] = cells else {
        return finding("a row without three cells", "escape a bar within a cell: `\\|`");
    };
    if asked.is_empty() {
        return finding("a row that asks nothing", "tell what was asked");
    }
    let reasoned = |cell: &str| REASONS.iter().any(|reason| cell.starts_with(reason));
    let has = |cell: &str, wanted: &[Kind]| names(cell).iter().any(|n| wanted.contains(&kind(n)));
    if !reasoned(lives) && !has(lives, &[Kind::Path]) {
        return finding("a row that names no file", "name one, or begin the cell with a reason");
    }
    if !reasoned(shown) && !reasoned(lives) && !has(shown, &[Kind::Behaviour, Kind::Test]) {
        return finding("a row that names no test", "name one, or begin the cell with a reason");
    }
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Path,
    Behaviour,
    Test,
    Word,
}

fn kind(name: &str) -> Kind {
    let ends_like_a_file =
        || name.rsplit_once('.').is_some_and(|(_, end)| crate::repo::ENDINGS.contains(&end));
    if name.contains([' ', '…']) || name.contains("://") {
        Kind::Word
    } else if name.starts_with("rule_") || name.starts_with("verb_") {
        Kind::Behaviour
    } else if name.split("::").count() == 3 {
        Kind::Test
    } else if name.contains('/') || ends_like_a_file() {
        Kind::Path
    } else {
        Kind::Word
    }
}

/// The cells of a table's line; none of any other line.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    let Some(inner) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut from = 0;
    for (at, _) in inner.match_indices('|') {
        let escaped = inner.get(..at).is_some_and(|before| before.ends_with('\\'));
        if !escaped {
            found.extend(inner.get(from..at));
            from = at + 1;
        }
    }
    found.extend(inner.get(from..));
    found.into_iter().map(str::trim).collect()
}

/// The line between a table's head and its rows.
pub(crate) fn is_rule(line: &str) -> bool {
    line.chars().all(|c| "|-: ".contains(c))
}

/// What stands between backticks.
pub(crate) fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Every word that is said to be in a file: `word` in `path`.
fn words_in_files(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').skip(1).collect();
    let said = parts.windows(3).step_by(2).filter_map(|three| match three {
        [word, " in ", path] if !word.contains(' ') => Some((*word, *path)),
        _ => None,
    });
    said.filter(|(word, path)| kind(word) == Kind::Word && kind(path) == Kind::Path).collect()
}

/// Every test as `crate::file::test`.
fn tests(repo: &Repo) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in repo.with_ending("rs") {
        let mut parts = file.path.split('/');
        let Some(("crates" | "examples", package)) = parts.next().zip(parts.next()) else {
            continue;
        };
        let stem = match file.name() {
            "mod.rs" => file.dir().rsplit('/').next().unwrap_or_default(),
            name => name.trim_end_matches(".rs"),
        };
        found.extend(test_functions(file).iter().map(|test| format!("{package}::{stem}::{test}")));
    }
    found
}

/// The functions of a file under `#[test]` or `#[tokio::test]`.
pub(crate) fn test_functions(file: &File) -> Vec<String> {
    let all = code(&file.text);
    let mut found = Vec::new();
    let mut marked = false;
    let mut rest = all.as_slice();
    while let [token, after @ ..] = rest {
        rest = after;
        if token.is("#") && after.first().is_some_and(|token| token.is("[")) {
            marked |= is_test_mark(after.get(1..).unwrap_or_default());
        } else if token.is("fn") {
            let name = after.first().and_then(Token::word).filter(|_| marked);
            found.extend(name.map(str::to_owned));
            marked = false;
        } else if token.is("}") || token.is(";") {
            marked = false;
        }
    }
    found
}

/// Whether an attribute is `test` or a path that ends so, with or without
/// arguments; `cfg(test)` is neither.
fn is_test_mark(attribute: &[Token]) -> bool {
    let path: Vec<&Token> =
        attribute.iter().take_while(|token| token.word().is_some() || token.is(":")).collect();
    path.last().is_some_and(|token| token.is("test"))
}

/// The behaviours that are on the list which every store runs.
fn behaviours(repo: &Repo) -> BTreeSet<String> {
    let words = |file: &File| -> Vec<String> {
        let all = code(&file.text);
        all.iter().filter_map(|token| token.word().map(str::to_owned)).collect()
    };
    let listed = repo.get(&format!("{BEHAVIOURS}list.rs")).map(words).unwrap_or_default();
    let written: BTreeSet<String> = repo
        .with_ending("rs")
        .filter(|file| file.dir() == BEHAVIOURS.trim_end_matches('/') && file.name() != "list.rs")
        .flat_map(words)
        .collect();
    listed.into_iter().filter(|name| written.contains(name)).collect()
}

/// A small repository around a page, whose other systems are in order.
#[cfg(test)]
fn sample(page: &str) -> Repo {
    let others: String = SYSTEMS[1..]
        .iter()
        .map(|system| format!("\n## {system}\n| a | not yet: b | not yet: c |\n"))
        .collect();
    let text = format!("## item-sync\n{page}{others}");
    let tests = "#[cfg(test)]\nmod tests {\n#[test]\nfn one() {}\nfn aid() {}\n\
                 #[tokio::test(flavor = \"x\")]\n#[ignore]\nasync fn two() {}\n}";
    Repo::sample(&[
        (PAGE, text.as_str()),
        ("crates/x/src/a.rs", tests),
        ("crates/x/tests/it/deep/mod.rs", "#[test]\nfn three() {}"),
        ("examples/y/src/main.rs", "fn four() {}"),
        ("crates/gristmill-conformance/src/behaviour/list.rs", "rule_01_a, rule_01_listed_only"),
        ("crates/gristmill-conformance/src/behaviour/b.rs", "fn rule_01_a() {} fn rule_01_b() {}"),
    ])
}

#[test]
fn a_page_whose_names_all_exist_passes() {
    let page = "| what was asked | where it lives | shown by |\n|---|---|---|\n\
        | `any/thing`, a \\| b | `crates/x/src/a.rs`, `Mill::put` | `x::a::one`, `x::a::two` |\n\
        | a folder | `examples/y/` | `rule_01_a`, `x::deep::three` |\n\
        | more | differs: on purpose | see above |\n\
        | paper | `docs/seeds.md` | nothing: paper |\n\
        A hole, seen in `crates/x/src/a.rs` by `rule_01_a` with `max_attempts: 1`.\n";
    expect(&rows(&sample(page)), &[]);
    expect(&rows(&Repo::sample(&[])), &[("docs/seeds.md:1", "missing")]);
}

#[test]
fn every_name_of_nothing_is_caught() {
    for name in [
        "crates/x/src/gone.rs",
        "gone.md",
        "crates/z/",
        "x::a::gone",
        "x::b::one",
        "x::a::aid",
        "y::main::four",
        "rule_01_gone",
        "rule_01_b",
        "rule_01_listed_only",
    ] {
        let row = format!("| a | `crates/x/src/a.rs` | `x::a::one`, `{name}` |\n");
        let wanted = format!("there is no `{name}`");
        expect(&rows(&sample(&row)), &[("docs/seeds.md:2", wanted.as_str())]);
        let hole = format!("| a | nothing: paper | |\n- `{name}` shows it.\n");
        expect(&rows(&sample(&hole)), &[("docs/seeds.md:3", wanted.as_str())]);
    }
}

#[test]
fn a_word_that_its_file_does_not_have_is_caught() {
    let page = "| a | `aid` in `crates/x/src/a.rs`, `max_attempts: 1` in `docs/seeds.md`, \
                `aids` in `crates/x/src/a.rs` | `x::a::one` |\n";
    expect(&rows(&sample(page)), &[("docs/seeds.md:2", "`aids` is not in crates/x/src/a.rs")]);
}

#[test]
fn a_row_that_says_too_little_is_caught() {
    for (row, wrong) in [
        ("| a | `crates/x/src/a.rs` | |", "names no test"),
        ("| a | `crates/x/src/a.rs` | `put` |", "names no test"),
        ("| a | the core | `x::a::one` |", "names no file"),
        ("| | `crates/x/src/a.rs` | `x::a::one` |", "asks nothing"),
        ("| a | `crates/x/src/a.rs` |", "three cells"),
        ("| a | `crates/x/src/a.rs` | b | `x::a::one` |", "three cells"),
    ] {
        let page = format!("| a | nothing: paper | |\n{row}\n");
        expect(&rows(&sample(&page)), &[("docs/seeds.md:3", wrong)]);
    }
}

#[test]
fn a_system_without_rows_is_caught() {
    expect(&rows(&sample("words\n")), &[("docs/seeds.md:1", "no row of item-sync")]);
}
