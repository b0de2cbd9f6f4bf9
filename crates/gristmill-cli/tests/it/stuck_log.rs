//! A log that nobody reads: its pipe is full, and whoever writes to it sleeps.
//! Work goes on all the same, and the process can be stopped.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::place::{Place, Running, eventually};

/// Says more than a pipe holds, and why it ends.
const LOUD: &str = "cat > /dev/null; i=0; while [ $i -lt 3000 ]; do \
                    echo 'a line of a hundred bytes, more or less, that nobody reads: it fills the pipe, and then nothing' >&2; \
                    i=$((i+1)); done; echo the end >&2; exit 1";

#[test]
fn a_log_that_is_not_read_stops_no_work_and_loses_no_error() {
    for json in [false, true] {
        let place = Place::with(&[&["q", "max_attempts=1", "timeout=5s", "lease=5s"]]);
        for _ in 0..6 {
            place.ok(&["put", "q", "1"]);
        }
        let mut words = vec!["work", "q", "--exec", LOUD, "--processors", "2"];
        if json {
            words.push("--json");
        }
        let start = Instant::now();
        let mut worker = place.start(&words);
        eventually("all have run", || place.stats("q")["failed"] == 6);
        println!("all had run after {:?}", start.elapsed());
        for task in place.json(&["failed"]).as_array().unwrap() {
            let error = task["error"].as_str().unwrap();
            assert!(error.ends_with("the end") && error.len() > 4000, "{error}");
            assert_eq!(task["history"][0]["outcome"], "error");
        }
        // Read at last, it says how much is missing.
        let seen = Running::until(&mut worker.stderr, " lines not shown");
        assert!(seen.iter().any(|line| line.contains("that nobody reads")));
        worker.signal(Signal::TERM);
        let (code, _, stderr) = worker.end();
        assert_eq!(code, 0, "{stderr}");
    }
}

#[test]
fn a_log_that_is_not_read_does_not_hold_up_the_second_signal() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let handler = LOUD.replace("echo the end >&2; exit 1", "echo begun; sleep 300");
    let mut worker = place.start(&["work", "q", "--exec", &handler]);
    Running::until(&mut worker.stdout, "begun");
    worker.signal(Signal::TERM);
    // Within this time both would be one wish; that it was heard stands in the log.
    std::thread::sleep(Duration::from_millis(500));
    worker.signal(Signal::TERM);
    let second = Instant::now();
    while worker.is_running() {
        // Two seconds are promised; one more for a machine that is busy.
        assert!(second.elapsed() < Duration::from_secs(3), "it is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(worker.end().0, 130);
    assert_eq!(place.json(&["show", "1"])["state"], "pending");
}
