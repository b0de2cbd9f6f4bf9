//! The program as its user sees it: one command, something to watch, and a
//! clean end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

/// The program, with nothing set from outside.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_morning-deck"));
    program.args(args);
    for (name, _) in std::env::vars() {
        if name.starts_with("APPLICATION_") {
            program.env_remove(name);
        }
    }
    program
}

/// Ends with the test at the latest.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn demo(args: &[&str], signal: &str) {
    let mut program = program(args);
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(program.spawn().expect("the program starts"));
    let mut lines = BufReader::new(running.0.stdout.take().expect("an output")).lines();
    // Its log is read to the end beside it, so that it never waits for us.
    let mut errors = running.0.stderr.take().expect("a log");
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).expect("a log");
        text
    });
    let mail = lines
        .find(|line| line.as_ref().is_ok_and(|line| line.contains("| mail to ada@example.com")));
    assert!(mail.is_some(), "a mail arrives");
    let id = running.0.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    let rest: Vec<String> = lines.map(|line| line.expect("a line")).collect();
    assert!(running.0.wait().expect("its end").success());
    assert!(rest.iter().any(|line| line.starts_with("morning-deck: stopped; ")), "{rest:?}");
    let log = log.join().expect("a log");
    assert!(log.contains("stopping: nothing more is begun"), "{log}");
}

#[test]
fn the_demonstration_mails_a_briefing_and_stops_at_ctrl_c() {
    demo(&[], "-INT");
}

#[test]
fn with_the_queues_in_memory_it_does_the_same_and_stops_when_told() {
    demo(&["demo", "--memory"], "-TERM");
}

fn ran(mut program: Command) -> (bool, String, String) {
    let Output { status, stdout, stderr } = program.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

#[test]
fn a_wrong_configuration_is_refused_with_every_mistake() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("deck.yaml");
    let text = "application:\n  jobs:\n    processing: {worker-count: 0}\n  queue: somewhere\n";
    std::fs::write(&file, text).expect("a file");
    let mut program = program(&["run", "--config", &file.display().to_string()]);
    program.env("APPLICATION_JOBS_PROCESSING_INTERVAL", "soon").current_dir(folder.path());
    let (ok, _, errors) = ran(program);
    assert!(!ok);
    for said in ["deck.yaml:3: ", "deck.yaml:4: ", "APPLICATION_JOBS_PROCESSING_INTERVAL: "] {
        assert!(errors.contains(said), "{said} is not in {errors}");
    }
    assert!(!folder.path().join("morning-deck.db").exists(), "nothing was begun");
}

#[test]
fn every_property_is_listed_with_its_default_and_variable() {
    let (ok, listed, _) = ran(program(&["properties"]));
    assert!(ok);
    let line =
        listed.lines().find(|line| line.starts_with("application.jobs.feed-recovery.interval"));
    let words: Vec<&str> = line.expect("a line").split_whitespace().collect();
    assert_eq!(words[1..], ["300000", "APPLICATION_JOBS_FEED_RECOVERY_INTERVAL"]);
    assert_eq!(listed.lines().count(), morning_deck::config::PROPERTIES.len());
}

#[test]
fn the_queue_part_is_short() {
    let lines = include_str!("../../src/queue.rs").lines().count();
    assert!(lines < 120, "{lines} lines");
}
