//! Files nobody uses: a `.rs` file that no `mod` declares is never compiled,
//! and a `.sql` file that nothing includes is never run. Both look alive.

use crate::lexer::{Token, begins, code};
use crate::repo::{File, Finding, Repo, expect, join};
use std::collections::BTreeSet;

pub(crate) fn modules(repo: &Repo) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> =
        repo.files.iter().filter(|file| is_root(file)).map(|file| file.path.clone()).collect();
    while let Some(path) = open.pop() {
        let Some(file) = repo.get(&path) else {
            continue;
        };
        if reached.insert(path) {
            open.extend(declared(file));
        }
    }
    repo.with_ending("rs")
        .filter(|file| file.in_src() && !reached.contains(&file.path))
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "no `mod` declares this file, so it is never compiled",
                "declare it or delete it",
            )
        })
        .collect()
}

/// Where a compiler starts: `lib.rs`, `main.rs` and the programs in `bin`.
fn is_root(file: &File) -> bool {
    let Some((_, inside)) = file.path.split_once("/src/").filter(|_| file.in_src()) else {
        return false;
    };
    let parts: Vec<&str> = inside.split('/').collect();
    match parts.as_slice() {
        ["lib.rs" | "main.rs"] | ["bin", _, "main.rs"] => true,
        ["bin", name] => name.ends_with(".rs"),
        _ => false,
    }
}

/// Every path that the file's `mod name;` lines can stand for. Of `name.rs` and
/// `name/mod.rs` only one exists; the other is simply not found.
fn declared(file: &File) -> Vec<String> {
    let stem = file.name().trim_end_matches(".rs");
    let own_dir = is_root(file) || stem == "mod";
    let base = if own_dir { file.dir().to_owned() } else { join(file.dir(), stem) };

    let all = code(&file.text);
    let mut found = Vec::new();
    // Inline modules around the place, each with the depth of its brace.
    let mut around: Vec<(usize, String)> = Vec::new();
    let mut depth = 0;
    let mut path_attribute: Option<String> = None;
    let mut rest = all.as_slice();
    while let [token, after @ ..] = rest {
        if let Some(path) = attribute(rest) {
            path_attribute = Some(path);
        } else if let Some((name, mark)) = module(rest) {
            let inside: Vec<&str> = around.iter().map(|(_, name)| name.as_str()).collect();
            let dir = join(&base, &inside.join("/"));
            if mark.is("{") {
                around.push((depth, name.to_owned()));
            } else if let Some(path) = path_attribute.take() {
                // Outside inline modules the attribute counts from the file's own folder.
                found.push(join(if inside.is_empty() { file.dir() } else { &dir }, &path));
            } else {
                found.push(join(&dir, &format!("{name}.rs")));
                found.push(join(&dir, &format!("{name}/mod.rs")));
            }
        }
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
            if around.last().is_some_and(|(at, _)| *at == depth) {
                around.pop();
            }
        }
        rest = after;
    }
    found
}

/// `mod NAME ;` or `mod NAME {` at this place.
fn module(rest: &[Token]) -> Option<(&str, &Token)> {
    match rest {
        [keyword, name, mark, ..] if keyword.is("mod") && (mark.is(";") || mark.is("{")) => {
            name.word().map(|name| (name, mark))
        }
        _ => None,
    }
}

/// The path of a `#[path = "..."]` at this place.
fn attribute(rest: &[Token]) -> Option<String> {
    const HEAD: &[&str] = &["#", "[", "path", "="];
    if begins(rest, HEAD) { rest.get(HEAD.len())?.string().map(str::to_owned) } else { None }
}

pub(crate) fn sql_files(repo: &Repo) -> Vec<Finding> {
    let included: BTreeSet<String> = repo.with_ending("rs").flat_map(includes).collect();
    repo.with_ending("sql")
        .filter(|file| file.in_src() && !included.contains(&file.path))
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "no include_str! of its crate names this file",
                "include it where it runs or delete it",
            )
        })
        .collect()
}

/// What a line of a `.sql` file begins with that names the statement below it.
const HEADING: &str = "-- name: ";

/// A statement that no string of its crate names is never run either, and of two with
/// one name only the first is.
pub(crate) fn sql_statements(repo: &Repo) -> Vec<Finding> {
    let named: BTreeSet<(&str, String)> = repo
        .with_ending("rs")
        .filter_map(|file| Some((file.crate_dir()?, file)))
        .flat_map(|(dir, file)| {
            let strings = code(&file.text);
            let strings: Vec<_> =
                strings.iter().filter_map(Token::string).map(str::to_owned).collect();
            strings.into_iter().map(move |string| (dir, string))
        })
        .collect();
    let mut findings = Vec::new();
    for file in repo.with_ending("sql").filter(|file| file.in_src()) {
        let mut seen = BTreeSet::new();
        for (line, text) in (1..).zip(file.text.lines()) {
            let Some(name) = text.strip_prefix(HEADING).map(str::trim) else {
                continue;
            };
            if !seen.insert(name) {
                let what = format!("statement {name} stands twice in this file");
                findings.push(Finding::new(&file.path, line, what, "give one another name"));
            }
            let home = file.crate_dir().unwrap_or_default();
            if !named.contains(&(home, name.to_owned())) {
                let what = format!("nothing in its crate names statement {name}");
                let remedy = "take it out of the file with statement(…), or delete it";
                findings.push(Finding::new(&file.path, line, what, remedy));
            }
        }
    }
    findings
}

/// The paths a file of a crate names in `include_str!`, within that crate.
fn includes(file: &File) -> Vec<String> {
    let all = code(&file.text);
    let home = file.crate_dir().map(|dir| format!("crates/{dir}/"));
    let mut found = Vec::new();
    let mut rest = all.as_slice();
    while let [_, after @ ..] = rest {
        if begins(rest, &["include_str", "!", "("]) {
            let path = rest.get(3).and_then(Token::string).map(|path| join(file.dir(), path));
            found.extend(
                path.filter(|path| home.as_ref().is_some_and(|home| path.starts_with(home))),
            );
        }
        rest = after;
    }
    found
}

#[test]
fn a_file_without_a_mod_is_caught() {
    let repo = Repo::sample(&[
        (
            "crates/x/src/lib.rs",
            "pub mod a;\npub(crate) mod b;\n// mod dead;\nmod inline { mod deep; }\nmod c;",
        ),
        ("crates/x/src/a.rs", "mod child;"),
        ("crates/x/src/a/child.rs", ""),
        ("crates/x/src/b/mod.rs", "mod sibling;"),
        ("crates/x/src/b/sibling.rs", ""),
        ("crates/x/src/inline/deep.rs", ""),
        ("crates/x/src/c.rs", "#[cfg(test)]\n#[path = \"odd_tests.rs\"]\nmod tests;"),
        ("crates/x/src/odd_tests.rs", ""),
        ("crates/x/src/bin/tool.rs", ""),
        ("crates/x/src/dead.rs", "mod below;"),
        ("crates/x/src/dead/below.rs", ""),
        ("crates/x/tests/all/other.rs", ""),
    ]);
    let wanted = [
        ("crates/x/src/dead.rs:1", "never compiled"),
        ("crates/x/src/dead/below.rs:1", "never compiled"),
    ];
    expect(&modules(&repo), &wanted);
}

#[test]
fn a_sql_file_nobody_includes_is_caught() {
    let repo = Repo::sample(&[
        ("crates/x/src/verbs/put.rs", "const A: &str = include_str!(\"../sql/put.sql\");"),
        ("crates/y/src/lib.rs", "const B: &str = include_str!(\"../../x/src/sql/claim.sql\");"),
        ("crates/x/src/sql/put.sql", ""),
        ("crates/x/src/sql/claim.sql", ""),
    ]);
    expect(&sql_files(&repo), &[("crates/x/src/sql/claim.sql:1", "include_str!")]);
}

#[test]
fn a_statement_nobody_names_is_caught_and_one_with_a_taken_name() {
    let repo = Repo::sample(&[
        ("crates/x/src/lib.rs", "const A: &str = statement(ALL, \"get\"); // \"gone\""),
        ("crates/y/src/lib.rs", "const B: &str = \"others\";"),
        (
            "crates/x/src/sql/task.sql",
            "-- Tasks.\n\n-- name: get\nSELECT 1\n-- name: gone\n-- name: others\n-- name: get\n",
        ),
    ]);
    let wanted = [
        ("crates/x/src/sql/task.sql:5", "names statement gone"),
        ("crates/x/src/sql/task.sql:6", "names statement others"),
        ("crates/x/src/sql/task.sql:7", "twice"),
    ];
    expect(&sql_statements(&repo), &wanted);
}
