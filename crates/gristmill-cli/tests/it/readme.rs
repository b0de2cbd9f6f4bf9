//! The README's console transcripts, run as they stand.

use std::path::Path;
use std::process::Command;

/// The commands and what each prints, in order.
pub(crate) fn transcript(markdown: &str) -> Vec<(String, Vec<String>)> {
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in markdown.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => steps.push((command.to_owned(), Vec::new())),
                None => steps.last_mut().unwrap().1.push(line.to_owned()),
            },
        }
    }
    steps
}

/// Times differ from run to run: `80ms` and `1.2s` are the same here.
fn settled(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let time = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
        let is_time = time.is_some_and(|t| !t.is_empty() && t.parse::<f64>().is_ok());
        if is_time || word == "now" { "TIME" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_readme_says_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let steps = transcript(&readme);
    assert!(steps.len() >= 10, "the README shows {} commands", steps.len());
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_gristmill")).parent().unwrap().to_owned();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for (command, expected) in steps {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env_remove("GRISTMILL_STORE")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {errors}");
        let printed: Vec<String> = printed.lines().chain(errors.lines()).map(settled).collect();
        for line in expected {
            assert!(printed.contains(&settled(&line)), "{command}\n{line}\nis not in {printed:#?}");
        }
    }
}
