//! The page about HTTP: its commands, run as they stand against a fresh service.

use std::path::Path;
use std::process::Command;

use crate::http::started;
use crate::place::Place;
use crate::readme::transcript;

/// Whether a line says what the page shows, where `…` stands for anything.
pub(crate) fn is_shown(line: &str, shown: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let Some(mut rest) = line.strip_prefix(parts[0]) else { return false };
    let (Some(last), true) = (parts.last(), parts.len() > 1) else { return rest.is_empty() };
    for part in &parts[1..parts.len() - 1] {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn the_http_page_says_what_happens() {
    for tool in ["curl", "python3"] {
        let tried = Command::new(tool).arg("--version").output();
        if !tried.is_ok_and(|output| output.status.success()) {
            println!("NOT RUN: {tool} is missing");
            return;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/http.md")).unwrap();
    let place = Place::new();
    let (_serve, address) = started(&place, &["serve"]);
    let here = |text: &str| text.replace("localhost:4747", &address);
    for (language, name) in [("sh", "worker.sh"), ("python", "sums.py")] {
        let begins = format!("```{language}\n# {name}");
        let script = page.split(&begins).nth(1).unwrap().split("```").next().unwrap();
        place.write(name, here(&format!("# {name}{script}")));
    }
    let steps = transcript(&page);
    assert!(steps.len() >= 23, "the page shows {} commands", steps.len());
    for (command, expected) in steps {
        let mut shell = Command::new("sh");
        shell.args(["-c", &here(&command)]).current_dir(place.path(""));
        shell.env("GRISTMILL_URL", format!("http://{address}"));
        shell.env("PYTHONPATH", root.join("clients/python")).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = shell.output();
        let printed = String::from_utf8(output.unwrap().stdout).unwrap();
        for shown in expected {
            let found = printed.lines().any(|line| is_shown(line, &shown));
            assert!(found, "{command}\n{shown}\nis not in\n{printed}");
        }
    }
}
