//! Documents that agree with the rest: each page can be found from another,
//! and each guarantee is shown by a behaviour that every store must pass.

use crate::lexer::code;
use crate::repo::{File, Finding, Repo, expect, join};
use std::collections::BTreeSet;

/// The pages a reader starts from.
const ENTRANCES: &[&str] = &["README.md", "ARCHITECTURE.md"];

pub(crate) fn links(repo: &Repo) -> Vec<Finding> {
    // Without a front page there is nowhere to link from yet.
    if repo.get("README.md").is_none() {
        return Vec::new();
    }
    let is_doc = |file: &&File| file.path.starts_with("docs/");
    let pages = repo
        .with_ending("md")
        .filter(|file| is_doc(file) || ENTRANCES.contains(&file.path.as_str()));
    let linked: BTreeSet<String> = pages
        .flat_map(|page| targets(page).into_iter().filter(|target| *target != page.path))
        .collect();
    repo.with_ending("md")
        .filter(|file| is_doc(file) && !linked.contains(&file.path))
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "no page links here",
                "link it from README.md, ARCHITECTURE.md or another page of docs",
            )
        })
        .collect()
}

/// Every program in a page is compiled: none is ignored, and the page is a doc test of
/// some crate.
pub(crate) fn programs(repo: &Repo) -> Vec<Finding> {
    let sources: String = repo.with_ending("rs").map(|file| file.text.as_str()).collect();
    let mut found = Vec::new();
    for page in repo.with_ending("md") {
        if page.path != "README.md" && !page.path.starts_with("docs/") {
            continue;
        }
        let blocks =
            || page.text.lines().enumerate().filter(|(_, line)| line.starts_with("```rust"));
        for (at, _) in blocks().filter(|(_, line)| line.contains("ignore")) {
            let cure = "make it a whole program and let it be compiled";
            found.push(Finding::new(&page.path, at + 1, "a program that nobody compiles", cure));
        }
        let included = format!("include_str!(\"../../../{}\")", page.path);
        if blocks().next().is_some() && !sources.contains(&included) {
            let cure = "include it in `pages` of crates/gristmill/src/lib.rs";
            found.push(Finding::new(&page.path, 1, "its programs are not compiled", cure));
        }
    }
    found
}

/// The files a page links to: `[text](target#part)`.
fn targets(page: &File) -> Vec<String> {
    let after_brackets = page.text.split("](").skip(1);
    after_brackets
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .map(|target| join(page.dir(), target))
        .collect()
}

const GUARANTEES: &str = "docs/guarantees.md";
const RULES: usize = 13;

/// Checks that the page has its rules under their numbers, that each names its
/// behaviours, and that the suite has at least one of each.
pub(crate) fn guarantees(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.get(GUARANTEES) else {
        return vec![Finding::new(
            GUARANTEES,
            1,
            "the page is missing",
            "write what users can rely on",
        )];
    };
    let mut findings = Vec::new();
    let found = rules(page);
    for (position, Rule { number, line, .. }) in found.iter().enumerate() {
        if *number != position + 1 || *number > RULES {
            let wrong = format!("rule {number} stands where rule {} belongs", position + 1);
            findings.push(Finding::new(
                GUARANTEES,
                *line,
                wrong,
                "keep the headings `## 1. ` to `## 13. ` in order",
            ));
        }
    }
    if found.len() < RULES {
        let wrong = format!("{} rules, not {RULES}", found.len());
        findings.push(Finding::new(
            GUARANTEES,
            page.text.lines().count(),
            wrong,
            "add the missing headings",
        ));
    }
    let behaviours = behaviours(repo);
    for Rule { number, line, named } in &found {
        let own = format!("rule_{number:02}");
        if !named.iter().any(|(prefix, _)| *prefix == own) {
            let remedy = format!("end it with a line `Shown by:` that names `{own}_...`");
            findings.push(Finding::new(
                GUARANTEES,
                *line,
                format!("rule {number} does not say what shows it"),
                remedy,
            ));
        }
        for (prefix, line) in named {
            if !behaviours.iter().any(|name| name.starts_with(&format!("{prefix}_"))) {
                findings.push(Finding::new(
                    GUARANTEES,
                    *line,
                    format!("no behaviour is named `{prefix}_...`"),
                    "add one to crates/gristmill-conformance/src, or take the claim back",
                ));
            }
        }
    }
    findings
}

/// One `## N. Title`, its line, and the prefixes named below it with theirs.
struct Rule {
    number: usize,
    line: usize,
    named: Vec<(String, usize)>,
}

fn rules(page: &File) -> Vec<Rule> {
    let mut found: Vec<Rule> = Vec::new();
    for (line, text) in page.lines() {
        let heading = text.strip_prefix("## ").and_then(|title| title.split_once(". "));
        if let Some(number) = heading.and_then(|(number, _)| number.parse().ok()) {
            found.push(Rule { number, line, named: Vec::new() });
        } else if let Some(rule) = found.last_mut() {
            rule.named.extend(prefixes(text).into_iter().map(|prefix| (prefix, line)));
        }
    }
    found
}

/// Every `rule_NN` in a line.
fn prefixes(line: &str) -> Vec<String> {
    line.split("rule_")
        .skip(1)
        .filter_map(|rest| rest.get(..2))
        .filter(|digits| digits.chars().all(|c| c.is_ascii_digit()))
        .map(|digits| format!("rule_{digits}"))
        .collect()
}

/// Every word of the suite's code that begins like a behaviour.
fn behaviours(repo: &Repo) -> BTreeSet<String> {
    repo.with_ending("rs")
        .filter(|file| file.path.starts_with("crates/gristmill-conformance/src/"))
        .flat_map(|file| code(&file.text))
        .filter_map(|token| {
            token.word().filter(|word| word.starts_with("rule_")).map(str::to_owned)
        })
        .collect()
}

#[test]
fn programs_in_pages_are_compiled() {
    let page = "text\n```rust,ignore\nlet x;\n```\n";
    let included = ("crates/x/src/lib.rs", "#[doc = include_str!(\"../../../docs/a.md\")]");
    let repo = Repo::sample(&[("docs/a.md", page), included]);
    expect(&programs(&repo), &[("docs/a.md:2", "nobody compiles")]);
    let repo = Repo::sample(&[("docs/a.md", "```rust,no_run\nfn main() {}\n```\n")]);
    expect(&programs(&repo), &[("docs/a.md:1", "not compiled")]);
}

#[test]
fn a_page_nobody_links_is_caught() {
    let docs = [("docs/a.md", "[self](a.md)"), ("docs/b.md", "[c](c.md#part)"), ("docs/c.md", "")];
    expect(&links(&Repo::sample(&docs)), &[]);
    let mut files = vec![("README.md", "[b](docs/b.md) [away](https://example.org/docs/a.md)")];
    files.extend(docs);
    expect(&links(&Repo::sample(&files)), &[("docs/a.md:1", "no page links here")]);
}

/// A page with all rules but those the test changes, and a suite that shows them.
#[cfg(test)]
fn sample(change: fn(usize, String) -> String, suite: fn(usize) -> String) -> Repo {
    let page: String = (1..=RULES)
        .map(|n| change(n, format!("## {n}. Rule\nShown by: `rule_{n:02}_...`\n")))
        .collect();
    let suite: String = (1..=RULES).map(suite).collect();
    Repo::sample(&[
        (GUARANTEES, page.as_str()),
        ("crates/gristmill-conformance/src/lib.rs", suite.as_str()),
    ])
}

#[cfg(test)]
fn shown(n: usize) -> String {
    format!("async fn rule_{n:02}_holds() {{}}\n")
}

#[test]
fn a_complete_page_passes() {
    expect(&guarantees(&sample(|_, text| text, shown)), &[]);
    expect(&guarantees(&Repo::sample(&[])), &[("docs/guarantees.md:1", "missing")]);
}

#[test]
fn a_missing_rule_is_caught() {
    let repo = sample(|n, text| if n == 13 { String::new() } else { text }, shown);
    expect(&guarantees(&repo), &[("docs/guarantees.md:24", "12 rules")]);
    let swapped = sample(
        |n, text| {
            if n == 2 { text.replace("2. Rule", "3. Rule") } else { text }
        },
        shown,
    );
    let wanted = [
        ("docs/guarantees.md:3", "belongs"),
        ("docs/guarantees.md:3", "does not say what shows it"),
    ];
    expect(&guarantees(&swapped), &wanted);
}

#[test]
fn a_rule_that_nothing_shows_is_caught() {
    let commented = |n: usize| {
        if n == 3 { "// rule_03_holds\n".to_owned() } else { shown(n) }
    };
    let found = guarantees(&sample(|_, text| text, commented));
    expect(&found, &[("docs/guarantees.md:6", "no behaviour is named `rule_03_...`")]);
    let silent = sample(
        |n, text| {
            if n == 1 { "## 1. Rule\n".to_owned() } else { text }
        },
        shown,
    );
    expect(&guarantees(&silent), &[("docs/guarantees.md:1", "does not say what shows it")]);
}
