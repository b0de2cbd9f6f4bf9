//! The generated code is the file beside the contract, byte for byte, and is
//! as the formatter leaves it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use gristmill_contract::generate::{self, Place};
use gristmill_contract::{Source, read};

const CONTRACT: &str = include_str!("queues.yaml");
const CODE: &str = include_str!("queues.rs.txt");

fn generated(text: &str, place: Place) -> String {
    let source = Source { name: "queues.yaml".to_owned(), text: text.to_owned() };
    let contract = read(&[source]).unwrap_or_else(|error| panic!("{error}"));
    generate::rust(&contract, &["queues.yaml"], place)
}

#[test]
fn the_code_is_the_golden_file() {
    let code = generated(CONTRACT, Place::Included);
    if std::env::var_os("GRISTMILL_BLESS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/contract/queues.rs.txt");
        std::fs::write(file, code).unwrap();
        return;
    }
    assert!(code == CODE, "the generated code has changed: look, then GRISTMILL_BLESS=1\n{code}");
    assert_eq!(code, generated(CONTRACT, Place::Included), "twice the same");
}

/// Formats with the formatter's own defaults, as in anyone's project.
fn formatted(code: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rustfmt.toml"), "").unwrap();
    let formatter = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut formatter) = formatter else {
        eprintln!("NOT RUN: there is no rustfmt here");
        return None;
    };
    formatter.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
    let output = formatter.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_formatter_changes_nothing() {
    // Names, lists and settings of every length, to meet every line break.
    let mut contracts = vec![CONTRACT.to_owned()];
    for length in (1..64).step_by(3) {
        let name = "n".repeat(length);
        let mut text = format!("queues:\n  - id: 1\n    name: {name}\n    fields:\n");
        let field_name = "n".repeat(length.min(58));
        for field in 0..(length % 7) {
            text += &format!("      - {{name: f{field}{field_name}, type: '[]timestamp?'}}\n");
        }
        text += "    settings: {lease: 30s, timeout: 5m, max_attempts: 7, capacity: 100}\n";
        for other in 2..=(length % 30) {
            text += &format!("  - {{id: {other}, name: q{other}}}\n");
        }
        contracts.push(text);
    }
    for contract in contracts {
        let code = generated(&contract, Place::File);
        let Some(formatted) = formatted(&code) else { return };
        assert!(formatted == code, "{contract}\n{}", difference(&code, &formatted));
    }
}

fn difference(ours: &str, theirs: &str) -> String {
    let lines = ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs);
    lines.take(5).map(|(ours, theirs)| format!("- {ours}\n+ {theirs}\n")).collect()
}
