//! Progress of what takes long: where somebody looks, and unless they would rather not.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

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

#[test]
fn a_store_that_takes_long_to_open_is_told_of() {
    let place = Place::new();
    place.ok(&["--store", "files://spool", "queue", "add", "q"]);
    // Another process has its turn, and does not end.
    let lock = File::options().write(true).open(place.path("spool/lock")).unwrap();
    lock.lock().unwrap();
    let program = format!("{} --store files://spool stats", env!("CARGO_BIN_EXE_gristmill"));
    let mut script = Command::new("script");
    script.args(["-qec", &program, "/dev/null"]).current_dir(place.path("")).env("TERM", "xterm");
    let Ok(mut child) = script.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() else {
        println!("NOT RUN: script is missing");
        return;
    };
    let (mut out, mut seen, mut some) = (child.stdout.take().unwrap(), Vec::new(), [0; 256]);
    while !String::from_utf8_lossy(&seen).contains("opening the store") {
        let read = out.read(&mut some).unwrap();
        assert!(read > 0, "it was never told of: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&some[..read]);
    }
    lock.unlock().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.contains("queue"), "{rest}");
}
