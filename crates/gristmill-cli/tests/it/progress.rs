//! Progress of what takes long: where somebody looks, and unless they would rather not.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::Place;

/// What takes so long, a program's start and end among it, must have drawn a bar.
const LONG: Duration = Duration::from_millis(1_500);

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
    let lines: String = (0..100_000).map(|n| format!("{{\"payload\":{n}}}\n")).collect();
    place.write("tasks", lines);
    for words in ["put q --from tasks", "check", "doctor", "migrate", "backup first"] {
        // What is over at once draws none, so a quick machine tries this of fewer; a busy
        // one may take its time to start a program, though not again and again.
        let drawn = (0..5).any(|_| {
            let begun = Instant::now();
            let bar = shown(&place, words);
            begun.elapsed() < LONG || bar.is_none_or(|bar| bar.contains('\x1b'))
        });
        assert!(drawn, "{words} draws nothing");
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
