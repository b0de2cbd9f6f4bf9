//! A store that does not answer is told of within two seconds, with who may be to
//! blame, and again when it is over.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::sqlite::rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, Running, eventually};

/// The line that tells of it, which has to come in time.
fn told(putting: &mut Running, asked: Instant) -> String {
    let line = Running::until(&mut putting.stderr, "has not answered").pop().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(2), "after {:?}: {line}", asked.elapsed());
    line
}

#[test]
fn a_lock_that_another_process_keeps_is_told_with_its_holder() {
    let place = Place::with(&[&["q"]]);
    let thief = Connection::open(place.path("gristmill.db")).unwrap();
    thief.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = Instant::now();
    let mut putting = place.start(&["put", "q", "1"]);
    let line = told(&mut putting, asked);
    assert!(line.contains("gristmill.db") && line.contains("holds its lock"), "{line}");
    assert!(line.contains(&format!("process {} (", std::process::id())), "{line}");
    thief.execute_batch("ROLLBACK").unwrap();
    let (code, stdout, _) = putting.end();
    assert_eq!((code, stdout.contains("enqueued") || stdout.contains('1')), (0, true), "{stdout}");
    // A process that stays says when it is over.
    thief.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = Instant::now();
    let mut worker = place.start(&["work", "q", "--exec", "cat > /dev/null"]);
    told(&mut worker, asked);
    thief.execute_batch("ROLLBACK").unwrap();
    Running::until(&mut worker.stderr, "answers again after");
    eventually("the task is done", || place.stats("q")["total"] == 0);
}

#[test]
fn a_stopped_process_that_keeps_a_spool_is_named() {
    let place = Place::new();
    let spool = ["--store", "files://spool"];
    place.ok(&["queue", "add", "q", spool[0], spool[1]]);
    let lock = place.path("spool/lock");
    assert!(lock.exists(), "{}", lock.display());
    let mut thief = Command::new("flock")
        .arg("--no-fork")
        .arg(&lock)
        .args(["sh", "-c", "echo has it; exec sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(thief.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    kill_process(Pid::from_child(&thief), Signal::STOP).unwrap();
    let asked = Instant::now();
    let mut putting = place.start(&["put", "q", "1", spool[0], spool[1]]);
    let line = told(&mut putting, asked);
    assert!(line.contains("which is stopped, holds its lock"), "{line}");
    kill_process(Pid::from_child(&thief), Signal::KILL).unwrap();
    thief.wait().unwrap();
    drop(out);
    putting.kill();
}
