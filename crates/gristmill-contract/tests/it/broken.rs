//! Broken contracts and the exact text each is answered with: `broken.txt`
//! holds the table. `GRISTMILL_BLESS=1` writes the answers anew; read the
//! difference before you keep it.

use std::fmt::Write as _;
use std::path::Path;

use gristmill_contract::{Source, read};

const TABLE: &str = include_str!("broken.txt");

/// A contract (or several, parted by `+++`) and what is said of it.
struct Case<'a> {
    title: &'a str,
    files: Vec<&'a str>,
    said: &'a str,
}

fn cases() -> Vec<Case<'static>> {
    let cases = TABLE.split("=== ").skip(1).map(|case| {
        let (title, rest) = case.split_once('\n').expect("a title");
        let (files, said) = rest.split_once("\n---\n").expect("an answer");
        Case { title, files: files.split("\n+++\n").collect(), said: said.trim_end() }
    });
    cases.collect()
}

fn answer(files: &[&str]) -> String {
    let names = ["queues.yaml", "more.yaml", "third.yaml"];
    let sources: Vec<Source> = names
        .iter()
        .zip(files)
        .map(|(name, text)| Source { name: (*name).to_owned(), text: format!("{text}\n") })
        .collect();
    match read(&sources) {
        Ok(_) => "no mistake".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_broken_contract_is_answered_in_these_words() {
    let cases = cases();
    if std::env::var_os("GRISTMILL_BLESS").is_some() {
        let mut table = TABLE.split("=== ").next().unwrap().to_owned();
        for Case { title, files, .. } in &cases {
            let said = answer(files);
            write!(table, "=== {title}\n{}\n---\n{said}\n\n", files.join("\n+++\n")).unwrap();
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/broken.txt");
        std::fs::write(path, table.trim_end().to_owned() + "\n").unwrap();
        return;
    }
    assert!(cases.len() >= 40, "{} cases", cases.len());
    for Case { title, files, said } in cases {
        let answered = answer(&files);
        assert!(answered == said, "{title}\n\nexpected:\n{said}\n\nanswered:\n{answered}");
    }
}
