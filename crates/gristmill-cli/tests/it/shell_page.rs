//! The page about the shell: its commands, run as they stand in an empty folder.

use std::path::Path;
use std::process::Command;

use crate::http_page::is_shown;
use crate::place::Place;
use crate::readme::transcript;

/// Runs of blanks are one: columns are as wide as what stands in them.
fn settled(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_shell_page_says_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/shell.md")).unwrap();
    let steps = transcript(&page);
    assert!(steps.len() >= 12, "the page shows {} commands", steps.len());
    let place = Place::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_gristmill")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for (command, shown) in steps {
        // A command goes on where the shell asks for more.
        let (more, expected): (Vec<_>, Vec<_>) =
            shown.into_iter().partition(|line| line.starts_with("> "));
        let mut script = command.clone();
        for line in more {
            script = format!("{script}\n{}", &line[2..]);
        }
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(place.path(""))
            .env("PATH", &path)
            .env_remove("GRISTMILL_STORE")
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert!(output.status.success(), "{command}: {printed}");
        for shown in expected {
            let found = printed.lines().any(|line| is_shown(&settled(line), &settled(&shown)));
            assert!(found, "{command}\n{shown}\nis not in\n{printed}");
        }
    }
}
