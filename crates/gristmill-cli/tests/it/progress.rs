//! Progress of what takes long: where somebody looks, and unless they would rather not.

use std::process::Command;

use crate::place::Place;

/// What a terminal shows of standard error; none where no terminal can be made.
fn shown(place: &Place, words: &str) -> Option<String> {
    let program = format!("{} {words} 2>&1 >/dev/null", env!("CARGO_BIN_EXE_gristmill"));
    let output = Command::new("script")
        .args(["-qec", &program, "/dev/null"])
        .current_dir(place.path(""))
        .env_remove("GRISTMILL_STORE")
        .env("TERM", "xterm")
        .output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("NOT RUN: script: {error}");
            None
        }
    }
}

#[test]
fn progress_is_for_terminals_and_those_who_look() {
    let place = Place::with(&[&["q"]]);
    let lines: String = (0..5_000).map(|n| format!("{{\"payload\":{n}}}\n")).collect();
    place.write("tasks", lines);
    for words in ["put q --from tasks", "check", "doctor", "migrate", "backup first"] {
        let Some(bar) = shown(&place, words) else { return };
        assert!(bar.contains('\x1b'), "{words}: {bar:?}");
    }
    for words in
        ["put q --from tasks --quiet", "--quiet check", "migrate --quiet", "backup second --quiet"]
    {
        assert_eq!(shown(&place, words).as_deref(), Some(""), "{words}");
    }
    // No terminal, no progress.
    let answer = place.run(&["put", "q", "--from", "tasks"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}
