//! What every file must be: introduced, finished, free of one machine's paths,
//! and short enough to read.

use crate::repo::{Finding, Repo, expect};

/// A first line with fewer words names the file but does not explain it.
const OPENING_WORDS: usize = 3;

pub(crate) fn opening_docs(repo: &Repo) -> Vec<Finding> {
    let remedy = "open the file with `//!` and a sentence that says what it is for";
    repo.with_ending("rs")
        .filter_map(|file| {
            let opening = file.text.lines().next().and_then(|line| line.strip_prefix("//!"));
            let wrong = match opening {
                None => "the file does not open with a doc comment",
                Some(text) if text.split_whitespace().count() < OPENING_WORDS => {
                    "the opening doc comment does not say what the file is for"
                }
                Some(_) => return None,
            };
            Some(Finding::new(&file.path, 1, wrong, remedy))
        })
        .collect()
}

/// Marks of unfinished work. Written in pieces so that this file has none.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimple", "mented!("),
];

/// Where developers keep their files. Also in pieces.
const LOCAL: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(crate) fn forbidden(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repo.files {
        for (number, line) in file.lines() {
            for mark in UNFINISHED.iter().filter(|mark| stands_alone(line, mark)) {
                let remedy = "finish it, or say plainly what is missing and why";
                findings.push(Finding::new(&file.path, number, format!("`{mark}`"), remedy));
            }
            for path in LOCAL.iter().filter(|path| is_absolute(line, path)) {
                let remedy = "name the file from the root of the repository";
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("a path of one machine (`{path}`)"),
                    remedy,
                ));
            }
        }
    }
    findings
}

/// Whether the mark occurs as a word, not inside a longer one.
fn stands_alone(line: &str, mark: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + mark.len()..).and_then(|text| text.chars().next());
        let open_end = !mark.ends_with('(') && after.is_some_and(is_word);
        !before.is_some_and(is_word) && !open_end
    })
}

/// Whether the path starts at the file system's root. Within `src/...` the same
/// letters are an ordinary folder of ours.
fn is_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.*})]>".contains(c))
    })
}

const LONGEST: usize = 500;

/// Files that may be longer, each with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

pub(crate) fn lengths(repo: &Repo) -> Vec<Finding> {
    lengths_but(repo, LONG_FILES)
}

fn lengths_but(repo: &Repo, exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.with_ending("rs").filter(|file| file.in_src()) {
        let lines = file.text.lines().count();
        let excepted =
            exceptions.iter().any(|(path, reason)| *path == file.path && !reason.is_empty());
        if lines > LONGEST && !excepted {
            findings.push(Finding::new(
                &file.path,
                lines,
                format!("{lines} lines, more than {LONGEST}"),
                "split it by what its parts are about; a table, a facade or one state machine may be longer: \
                 list it in LONG_FILES in crates/tidy/tests/tidy/text.rs with the reason",
            ));
        }
    }
    // An exception that no longer excuses anything would excuse the next file of that name.
    for (path, _) in exceptions {
        if repo.get(path).is_none_or(|file| file.text.lines().count() <= LONGEST) {
            findings.push(Finding::new(
                path,
                1,
                "listed in LONG_FILES but not long",
                "take it off the list",
            ));
        }
    }
    findings
}

#[test]
fn a_file_without_an_introduction_is_caught() {
    let repo = Repo::sample(&[
        ("a.rs", "//! Claims due tasks in order.\n"),
        ("b.rs", "use std::io;\n//! Too late for this.\n"),
        ("c.rs", "//! placeholder\n"),
        ("d.rs", ""),
    ]);
    let wanted =
        [("b.rs:1", "does not open"), ("c.rs:1", "does not say"), ("d.rs:1", "does not open")];
    expect(&opening_docs(&repo), &wanted);
}

#[test]
fn every_unfinished_mark_is_caught() {
    for mark in UNFINISHED {
        let text = format!("fine\n// {mark}: later\nthe{mark} a{mark}\n");
        expect(&forbidden(&Repo::sample(&[("a.md", text.as_str())])), &[("a.md:2", mark)]);
    }
    let longer =
        format!("mktemp -t a.{}\nfn is_{}_list()\n", concat!("XX", "XXXX"), concat!("TO", "DO"));
    expect(&forbidden(&Repo::sample(&[("a.sh", longer.as_str())])), &[]);
}

#[test]
fn every_local_path_is_caught() {
    for path in LOCAL {
        let text = format!("see `{path}notes`\nsqlite://{path}a.db\ncrates/x/src{path}mod.rs\n");
        expect(
            &forbidden(&Repo::sample(&[("a.toml", text.as_str())])),
            &[("a.toml:1", path), ("a.toml:2", path)],
        );
    }
}

#[test]
fn a_long_file_is_caught_unless_listed() {
    let long = "line\n".repeat(LONGEST + 1);
    let repo = Repo::sample(&[
        ("crates/x/src/a.rs", long.as_str()),
        ("crates/x/tests/b.rs", long.as_str()),
    ]);
    expect(&lengths(&repo), &[("crates/x/src/a.rs:501", "LONG_FILES")]);
    expect(&lengths_but(&repo, &[("crates/x/src/a.rs", "one table")]), &[]);
    let stale = lengths_but(
        &repo,
        &[("crates/x/src/a.rs", "one table"), ("crates/x/src/gone.rs", "a table")],
    );
    expect(&stale, &[("crates/x/src/gone.rs:1", "take it off")]);
}
