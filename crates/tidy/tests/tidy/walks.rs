//! The walks through the code that ARCHITECTURE.md tells: every file they name exists.

use crate::repo::{Finding, Repo, expect};

const PAGE: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Five walks";
/// What the page's letters stand for.
const SHORT: &[(&str, &str)] = &[
    ("g/", "crates/gristmill/src/"),
    ("c/", "crates/gristmill-core/src/"),
    ("s/", "crates/gristmill-sqlite/src/"),
    ("p/", "crates/gristmill-postgres/src/"),
];

pub(crate) fn files(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.get(PAGE) else { return Vec::new() };
    let mut inside = false;
    let mut found = Vec::new();
    for (line, text) in page.lines() {
        if text.starts_with("## ") {
            inside = text == SECTION;
        }
        // Every second piece stands between backticks.
        for name in text.split('`').skip(1).step_by(2).filter(|_| inside) {
            let long = SHORT.iter().find_map(|(short, long)| {
                name.strip_prefix(short).map(|rest| format!("{long}{rest}"))
            });
            if let Some(path) = long.filter(|path| !repo.has(path)) {
                let remedy = "name the files that a call meets now";
                found.push(Finding::new(PAGE, line, format!("there is no {path}"), remedy));
            }
        }
    }
    found
}

#[test]
fn a_walk_through_a_file_that_is_gone_is_caught() {
    let page = "## Before\n`c/gone.rs`\n## Five walks\n`c` is it: `c/a.rs` → `c/b.rs`\n## After\n`s/x.rs`\n";
    let repo = Repo::sample(&[(PAGE, page), ("crates/gristmill-core/src/a.rs", "")]);
    expect(&files(&repo), &[("ARCHITECTURE.md:4", "no crates/gristmill-core/src/b.rs")]);
}
