//! The program itself: mails put by one process and sent by another, with the
//! number of processors changed by a file.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mail-service"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, words: &[&str]) -> String {
    let output = command(folder, words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} never came true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Killed when a test ends early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn mails_go_out_and_processors_follow_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert_eq!(run(at, &["send", "Hello", "ada@x.org", "nowhere"]).trim(), "2 mails put");
    run(at, &["newsletter", "News", "grace@x.org", "edsger@x.org"]);
    let said = run(at, &["work", "--drain"]);
    assert!(said.starts_with("6 done"), "two mails, a letter and its two, one given up: {said}");
    let log = std::fs::read_to_string(at.join("outbox/undelivered.log")).unwrap();
    assert!(log.contains("'nowhere' is no address"), "{log}");

    let words = ["work", "--control", "processors", "--metrics", "metrics.prom", "--managed"];
    let worker = command(at, &words).stdout(Stdio::piped()).spawn().unwrap();
    let worker = Running(worker);
    let metric = |line: &str| {
        std::fs::read_to_string(at.join("metrics.prom")).is_ok_and(|text| text.contains(line))
    };
    eventually("one processor", || metric("queue_running_job_processors 1\n"));
    std::fs::write(at.join("processors"), "3\n").unwrap();
    eventually("three processors", || metric("queue_running_job_processors 3\n"));
    run(at, &["send", "Later", "busy+1@x.org"]);
    eventually("a mail that came back once", || {
        run(at, &["show"]).lines().any(|line| line.starts_with("emails") && line.ends_with(" 4"))
    });
    drop(worker);
}
