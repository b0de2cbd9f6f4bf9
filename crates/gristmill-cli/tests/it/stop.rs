//! Stopping a worker: gently, by force, and by pulling the plug.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gristmill::sqlite::rusqlite::Connection;
use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, Running, eventually, is_alive};

/// The second signal ends a worker within this time.
const NOW: Duration = Duration::from_secs(2);

#[test]
fn a_signal_lets_what_runs_finish_and_starts_no_more() {
    let place = Place::with(&[&["q"]]);
    for number in 0..20 {
        place.ok(&["put", "q", &number.to_string()]);
    }
    let handler = "echo begun; sleep 1; echo ended";
    let mut worker = place.start(&["work", "q", "--exec", handler]);
    Running::until(&mut worker.stdout, "begun");
    worker.signal(Signal::TERM);
    let (code, stdout, stderr) = worker.end();
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.matches("ended").count(), 1, "{stdout}");
    assert!(stderr.contains("stopping"), "{stderr}");
    let stats = place.stats("q");
    assert_eq!((&stats["ready"], &stats["processing"]), (&json!(19), &json!(0)));
}

#[test]
fn a_second_signal_stops_what_runs_and_gives_it_back() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let mut worker = place.start(&["work", "q", "--exec", "echo begun; sleep 300"]);
    Running::until(&mut worker.stdout, "begun");
    worker.signal(Signal::INT);
    Running::until(&mut worker.stderr, "stopping");
    worker.signal(Signal::INT);
    let (code, _, stderr) = worker.end();
    assert_eq!(code, 130, "{stderr}");
    let task = place.json(&["show", "1"]);
    assert_eq!((&task["state"], &task["attempts"]), (&json!("pending"), &json!(0)));
}

#[test]
fn a_drain_that_is_stopped_says_so() {
    let place = Place::with(&[&["q"]]);
    for _ in 0..3 {
        place.ok(&["put", "q", "1"]);
    }
    let mut worker = place.start(&["work", "q", "--exec", "echo begun; sleep 1", "--drain"]);
    Running::until(&mut worker.stdout, "begun");
    worker.signal(Signal::TERM);
    let (code, _, stderr) = worker.end();
    assert_eq!(code, 130, "{stderr}");
    assert!(stderr.contains("before the queues were drained"), "{stderr}");
}

#[test]
fn an_operators_cancel_ends_a_running_handler() {
    let place = Place::with(&[&["q", "lease=2s"]]);
    place.ok(&["put", "q", "1"]);
    let mut worker = place.start(&["work", "q", "--exec", "echo begun; sleep 300"]);
    Running::until(&mut worker.stdout, "begun");
    let report = place.json(&["cancel", "1"]);
    assert_eq!(report["counts"], json!({ "cancel_requested": 1 }));
    Running::until(&mut worker.stderr, "cancelled");
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().0, 0);
    assert_eq!(place.stats("q")["total"], 0);
}

#[test]
fn a_killed_worker_loses_nothing() {
    let place = Place::with(&[&["q", "lease=1s"]]);
    let all: BTreeSet<String> = (0..40).map(|n| format!("task-{n}")).collect();
    for payload in &all {
        place.ok(&["put", "q", payload]);
    }
    // One short line a run: appending it is one step, whoever else appends.
    let handler = "x=$(cat); echo $x >> seen; echo $x; sleep 0.01";
    let mut worker = place.start(&["work", "q", "--exec", handler, "--processors", "2"]);
    for _ in 0..10 {
        let mut line = String::new();
        assert!(worker.stdout.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    worker.kill();
    let left = place.stats("q")["total"].as_u64().unwrap();
    assert!(left > 0, "it was killed in the middle");
    // What the dead one held comes back when its lease runs out.
    eventually("an empty queue", || {
        place.ok(&["work", "q", "--exec", handler, "--drain"]);
        place.stats("q")["total"] == 0
    });
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    let seen: BTreeSet<String> = seen.lines().map(str::to_owned).collect();
    assert_eq!(seen, all);
    assert_eq!(place.json(&["failed"]), json!([]));
    assert_eq!(place.json(&["check"])["sound"], true);
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let mut worker = place.start(&["work", "q", "--exec", "echo begun; sleep 1; echo ended"]);
    Running::until(&mut worker.stdout, "begun");
    // As `timeout` does: to the process, then to its group.
    worker.signal(Signal::TERM);
    worker.signal(Signal::TERM);
    worker.signal(Signal::INT);
    let (code, stdout, stderr) = worker.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("ended"), "{stdout}");
}

#[test]
fn a_closed_terminal_stops_it_like_any_signal() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let mut worker = place.start(&["work", "q", "--exec", "echo begun; sleep 1; echo ended"]);
    Running::until(&mut worker.stdout, "begun");
    worker.signal(Signal::HUP);
    let (code, stdout, stderr) = worker.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("ended"), "{stdout}");
    assert_eq!(place.stats("q")["total"], 0);
}

/// As `nohup` starts it.
#[test]
fn one_that_was_started_to_ignore_a_closed_terminal_does() {
    let place = Place::with(&[&["q"]]);
    let work = "trap '' HUP; exec \"$0\" work q --exec 'echo handled'";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", work, env!("CARGO_BIN_EXE_gristmill")]).current_dir(place.path(""));
    let mut worker =
        Running::of(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    Running::until(&mut worker.stderr, "working on q");
    worker.signal(Signal::HUP);
    place.ok(&["put", "q", "1"]);
    Running::until(&mut worker.stdout, "handled");
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().0, 0);
}

#[test]
fn the_second_signal_ends_a_handler_that_does_not_listen() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let deaf = "trap '' TERM INT; echo $$; while :; do sleep 0.1; done";
    let mut worker = place.start(&["work", "q", "--exec", deaf]);
    let mut pid = String::new();
    worker.stdout.read_line(&mut pid).unwrap();
    worker.signal(Signal::TERM);
    Running::until(&mut worker.stderr, "stopping");
    let start = Instant::now();
    worker.signal(Signal::TERM);
    let (code, _, stderr) = worker.end();
    assert!(start.elapsed() < NOW, "{:?}: {stderr}", start.elapsed());
    assert_eq!(code, 130, "{stderr}");
    assert!(!is_alive(&pid), "it outlived its worker");
    let task = place.json(&["show", "1"]);
    assert_eq!((&task["state"], &task["attempts"]), (&json!("pending"), &json!(0)));
}

/// The store is locked by somebody, so nothing can be given back.
#[test]
fn the_second_signal_ends_a_worker_whose_store_does_not_answer() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let mut worker = place.start(&["work", "q", "--exec", "echo begun; sleep 300"]);
    Running::until(&mut worker.stdout, "begun");
    let other = Connection::open(place.path("gristmill.db")).unwrap();
    other.busy_timeout(Duration::from_secs(30)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    worker.signal(Signal::TERM);
    Running::until(&mut worker.stderr, "stopping");
    let start = Instant::now();
    worker.signal(Signal::TERM);
    let (code, _, stderr) = worker.end();
    assert!(start.elapsed() < NOW, "{:?}: {stderr}", start.elapsed());
    assert_eq!(code, 130, "{stderr}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(place.stats("q")["processing"], 1, "its lease runs out");
}
