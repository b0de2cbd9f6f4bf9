//! On a terminal: what is drawn there besides the answer.

use std::io::BufReader;
use std::process::{Command, Stdio};

use crate::place::{Place, Running, eventually, is_alive};

/// What a terminal gets to see of a line in the shell, in which `gristmill` is the
/// binary. None, said aloud, where no program plays a terminal.
fn seen(place: &Place, line: &str) -> Option<String> {
    match script(place, line).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("NOT RUN: script: {error}");
            None
        }
    }
}

/// Who closes the window means all that runs in it.
#[test]
fn a_service_ends_with_the_terminal_it_was_started_in() {
    let place = Place::new();
    place.write("gristmill.yaml", "store: sqlite://a.db\nqueues:\n  - {name: q, exec: cat}\n");
    let mut script = script(&place, "sh -c 'echo $$ > pid; exec gristmill up'");
    let mut terminal = match script.stdout(Stdio::piped()).spawn() {
        Ok(terminal) => terminal,
        Err(error) => return println!("NOT RUN: script: {error}"),
    };
    let mut drawn = BufReader::new(terminal.stdout.take().unwrap());
    Running::until(&mut drawn, "Stop with Ctrl-C");
    let pid = std::fs::read_to_string(place.path("pid")).unwrap().trim().to_owned();
    assert!(is_alive(&pid));
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    eventually("it has ended", || !is_alive(&pid));
}

#[test]
fn what_is_over_at_once_draws_no_bar() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.ok(&["put", "q", "1"]);
    place.run(&["work", "q", "--exec", "exit 65", "--drain"]);
    for (line, drawn) in [("gristmill failed", "tasks ("), ("gristmill list", "looking for tasks")]
    {
        // On a machine that is busy something is slow now and then.
        eventually(line, || match seen(&place, line) {
            Some(seen) => seen.contains("failed") && !seen.contains(drawn),
            None => true,
        });
    }
}

/// Plays a terminal to a line in the shell.
fn script(place: &Place, line: &str) -> Command {
    let binary = place.command(&[]);
    let line = line.replace("gristmill", &binary.get_program().to_string_lossy());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).current_dir(place.path(""));
    script.env_remove("GRISTMILL_STORE").env("GRISTMILL_LISTEN", "off").env("TERM", "xterm");
    script
}

#[test]
fn what_takes_long_says_how_far_it_is() {
    let place = Place::with(&[&["q"]]);
    let line = "(echo a; sleep 2; echo b) | gristmill put q --lines";
    if let Some(seen) = seen(&place, line) {
        assert!(seen.contains("1 task ") && seen.contains("/s)"), "{seen}");
        assert!(seen.contains("2 enqueued"), "{seen}");
    }
}
