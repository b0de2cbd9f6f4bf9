//! What is packaged is what the pages show.

use crate::repo::{Finding, Repo, expect};

const UNIT: &str = "packaging/gristmill.service";
const PAGE: &str = "docs/operations.md";

/// The unit that the Debian package installs stands in the page as it is.
pub(crate) fn unit(repo: &Repo) -> Vec<Finding> {
    let shown = repo.get(UNIT).zip(repo.get(PAGE)).is_some_and(|(unit, page)| {
        !unit.text.is_empty() && page.text.contains(&format!("```ini\n{}```", unit.text))
    });
    if shown {
        return Vec::new();
    }
    let remedy = format!("copy {UNIT} into it");
    vec![Finding::new(PAGE, 1, "it shows another unit than the one that is packaged", remedy)]
}

#[test]
fn another_unit_is_caught() {
    let page = (PAGE, "# Page\n\n```ini\n[Unit]\n```\n");
    assert_eq!(unit(&Repo::sample(&[page, (UNIT, "[Unit]\n")])), []);
    let found = unit(&Repo::sample(&[page, (UNIT, "[Unit]\nAfter=x\n")]));
    expect(&found, &[("docs/operations.md:1", "another unit")]);
}
