//! SQL stands in `.sql` files, and only in the crates of SQL stores.
//!
//! A statement in such a file can be read, explained and compared with the same
//! verb of another store; it has a name there (`-- name: …`) by which it is taken. Statements that only steer the connection
//! (`PRAGMA`, `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`, `RELEASE`) may stand
//! in Rust: the words below do not match them.

use crate::crates::SQL_STORES;
use crate::lexer::{Token, begins, tokens};
use crate::repo::{File, Finding, Repo, expect};

/// Words that open a statement. Any white space may part them.
const OPENINGS: &[&[&str]] = &[
    &["SELECT"],
    &["INSERT", "INTO"],
    &["INSERT", "OR"],
    &["REPLACE", "INTO"],
    &["DELETE", "FROM"],
    &["CREATE", "TABLE"],
    &["CREATE", "INDEX"],
    &["CREATE", "UNIQUE", "INDEX"],
    &["CREATE", "TRIGGER"],
    &["ALTER", "TABLE"],
    &["DROP", "TABLE"],
];

/// A comment on the line above a literal that lets it stay, with the reason.
const ESCAPE: &str = "tidy: sql because";

pub(crate) fn statements(repo: &Repo) -> Vec<Finding> {
    repo.with_ending("rs")
        .filter(|file| !only_tests(file))
        .flat_map(|file| in_file(repo, file))
        .collect()
}

/// Tests, benches and examples may look at a database as their reader would.
fn only_tests(file: &File) -> bool {
    let mut folders = file.dir().split('/');
    folders.any(|folder| ["tests", "benches", "examples"].contains(&folder))
        || file.name() == "tests.rs"
}

fn in_file(repo: &Repo, file: &File) -> Vec<Finding> {
    let all = tokens(&file.text);
    let mut findings = Vec::new();
    let mut rest = all.as_slice();
    while let [token, after @ ..] = rest {
        if let Some(end) = test_module(rest) {
            rest = end;
            continue;
        }
        rest = after;
        let Some(statement) = token.string().and_then(opening) else {
            continue;
        };
        if in_store(repo, file) {
            match escape(&all, token.line) {
                Some(reason) if !reason.is_empty() => {}
                Some(_) => findings.push(Finding::new(
                    &file.path,
                    token.line,
                    format!("the escape above {statement} gives no reason"),
                    format!("write `// {ESCAPE} ...` and say why"),
                )),
                None => findings.push(Finding::new(
                    &file.path,
                    token.line,
                    format!("a {statement} statement in a string literal"),
                    format!("move it to a .sql file, or write `// {ESCAPE} ...` on the line above"),
                )),
            }
        } else {
            findings.push(Finding::new(
                &file.path,
                token.line,
                format!("a {statement} statement outside the SQL stores"),
                "give the Store trait a verb and let the stores write the SQL",
            ));
        }
    }
    findings
}

/// Whether the file belongs to the source of a crate that may hold SQL.
fn in_store(repo: &Repo, file: &File) -> bool {
    let Some(dir) = file.crate_dir() else {
        return false;
    };
    let manifest = repo.get(&format!("crates/{dir}/Cargo.toml"));
    let name = manifest.and_then(|manifest| crate::manifest::value(manifest, "package", "name"));
    name.is_some_and(|name| SQL_STORES.contains(&name))
}

/// The statement a literal holds, by its first words.
fn opening(text: &str) -> Option<String> {
    // An escape such as `\n` would otherwise stick to the word after it.
    let text = text.replace("\\n", " ").replace("\\t", " ").replace('\\', " ");
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "(;,".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let known = OPENINGS.iter().find(|opening| {
        // A lone word without a blank after it is a name, not a statement.
        let more = words.len() > 1 || text.ends_with(char::is_whitespace);
        more && words.windows(opening.len()).any(|window| window == **opening)
    });
    let update = words.iter().skip_while(|word| **word != "UPDATE").any(|word| *word == "SET");
    known.map(|opening| opening.join(" ")).or(update.then(|| "UPDATE".to_owned()))
}

/// The reason given in the comment lines that end just above the line.
fn escape(all: &[Token], line: usize) -> Option<&str> {
    let mut above = line;
    for token in all.iter().rev().skip_while(|token| token.line >= line) {
        let comment = token.comment().filter(|_| token.line + 1 == above)?;
        above = token.line;
        if let Some((_, reason)) = comment.split_once(ESCAPE) {
            return Some(reason.trim());
        }
    }
    None
}

/// What follows an inline `#[cfg(test)] mod name { ... }`, if one is next.
fn test_module(rest: &[Token]) -> Option<&[Token]> {
    const HEAD: &[&str] = &["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    // The name and the brace come after the head; a `mod name;` is a file.
    if !begins(rest, HEAD) || !rest.get(HEAD.len() + 1)?.is("{") {
        return None;
    }
    let mut depth = 0;
    for (index, token) in rest.iter().enumerate() {
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth -= 1;
            if depth == 0 {
                return rest.get(index + 1..);
            }
        }
    }
    Some(&[])
}

#[cfg(test)]
fn sample(package: &str, path: &str, text: &str) -> Repo {
    let manifest = format!("[package]\nname = \"{package}\"\n");
    Repo::sample(&[("crates/x/Cargo.toml", manifest.as_str()), (path, text)])
}

#[test]
fn sql_outside_the_stores_is_caught() {
    let path = "crates/x/src/lib.rs";
    for text in [
        "\"SELECT 1\"",
        "\"SELECT \"",
        "\"INSERT INTO t VALUES (1)\"",
        "\"INSERT OR IGNORE INTO t\"",
        "\"delete\\nDELETE FROM t\"",
        "r#\"CREATE TABLE t (a)\"#",
        "\"UPDATE t\n SET a = 1\"",
    ] {
        let text = format!("//! doc\n{text}");
        expect(
            &statements(&sample("gristmill", path, &text)),
            &[("crates/x/src/lib.rs:2", "outside")],
        );
    }
}

#[test]
fn sql_in_a_string_of_a_store_is_caught() {
    let found = statements(&sample("gristmill-sqlite", "crates/x/src/a.rs", "\n\"SELECT 1\""));
    expect(&found, &[("crates/x/src/a.rs:2", "move it to a .sql file")]);
}

#[test]
fn what_is_not_a_statement_passes() {
    let text = "// SELECT 1\n\"PRAGMA synchronous = FULL\" \"BEGIN IMMEDIATE\" \"SELECT\" \"SELECTED a\" \"UPDATE it\"";
    expect(&statements(&sample("gristmill", "crates/x/src/a.rs", text)), &[]);
}

#[test]
fn tests_may_hold_sql() {
    let sql = "\"SELECT 1\"";
    expect(&statements(&sample("gristmill", "crates/x/tests/a.rs", sql)), &[]);
    let inline = "#[cfg(test)]\nmod tests { fn a() { \"SELECT 1\" } }\n\"SELECT 2\"";
    let found = statements(&sample("gristmill", "crates/x/src/a.rs", inline));
    expect(&found, &[("crates/x/src/a.rs:3", "outside")]);
}

#[test]
fn an_escape_needs_a_reason_and_works_in_stores_only() {
    let with = "// tidy: sql because the column list is built here\n\"SELECT 1\"";
    let without = "// tidy: sql because\n\"SELECT 1\"";
    let path = "crates/x/src/a.rs";
    expect(&statements(&sample("gristmill-sqlite", path, with)), &[]);
    expect(
        &statements(&sample("gristmill-sqlite", path, without)),
        &[("crates/x/src/a.rs:2", "no reason")],
    );
    expect(&statements(&sample("gristmill", path, with)), &[("crates/x/src/a.rs:2", "outside")]);
}
