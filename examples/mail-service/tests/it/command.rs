//! The program itself: mails put by one process and sent by another, with the
//! number of processors changed by a file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::port::{
    ClaimRequest, ClaimedTask, Outcome, SettleAnswer, Settlement, Token, When, WorkerId,
};
use gristmill::{Mill, QueueName};

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

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
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

impl Running {
    fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = command(folder, words);
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

/// A mail whose file is a pipe that nobody reads: its handler blocks a thread for ever.
fn blocked(folder: &Path) {
    run(folder, &["send", "Hello", "ada@x.org"]);
    std::fs::create_dir(folder.join("outbox")).unwrap();
    let made = Command::new("mkfifo").arg(folder.join("outbox/1.eml")).status().unwrap();
    assert!(made.success());
}

#[test]
fn the_second_signal_ends_it_while_a_handler_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    blocked(at);
    let mut worker = Running::start(at, &["work", "--metrics", "metrics.prom"]);
    let metric = |line: &str| {
        std::fs::read_to_string(at.join("metrics.prom")).is_ok_and(|text| text.contains(line))
    };
    eventually("the mail is in hand", || {
        metric("queue_tasks_in_progress{queue=\"emails\",queue_num=\"1\"} 1")
    });
    worker.signal("-TERM");
    let mut lines = BufReader::new(worker.0.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("stopping")), "it heard the first one");
    // Signals within a moment are one, so it is said until it is heard.
    let asked = Instant::now();
    eventually("it ends", || {
        worker.signal("-TERM");
        worker.0.try_wait().unwrap().is_some()
    });
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    // What was cut off is another worker's when the lease is over.
    assert!(run(at, &["show"]).contains("1 emails"));
}

#[test]
fn a_slow_cycle_is_told_counted_and_scraped_and_a_stop_shows_that_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    blocked(at);
    let words =
        ["work", "--slow-cycle", "50", "--listen", "127.0.0.1:0", "--metrics", "metrics.prom"];
    let mut worker = Running::start(at, &words);
    let mut stderr = BufReader::new(worker.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = stderr.find(|line| line.contains("/metrics")).unwrap();
    let address = line.split_once("address=").unwrap().1.trim().to_owned();
    // Told while it takes its time, not when it is over.
    assert!(stderr.any(|line| line.contains("WARN") && line.contains("cycle")));
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let slow = "queue_slow_cycles_total{queue=\"emails\",queue_num=\"1\"} 1";
    eventually("the slow cycle is counted", || ask("/metrics").contains(slow));
    let answer = ask("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("version=0.0.4"), "{answer}");
    assert!(answer.contains("queue_running_workers 1\n"), "{answer}");
    assert!(ask("/").starts_with("HTTP/1.1 404"));
    // The mail goes out once somebody reads the pipe.
    let mail = std::fs::read_to_string(at.join("outbox/1.eml")).unwrap();
    assert!(mail.starts_with("To: ada@x.org"), "{mail}");
    eventually("it is done", || {
        ask("/metrics").contains("queue_tasks_in_progress{queue=\"emails\",queue_num=\"1\"} 0")
    });
    worker.signal("-TERM");
    std::thread::spawn(move || stderr.for_each(drop));
    let mut stdout = String::new();
    worker.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(worker.0.wait().unwrap().success());
    assert_eq!(stdout, "1 done, 0 came back, 1 slow cycles\n");
    let last = std::fs::read_to_string(at.join("metrics.prom")).unwrap();
    for none in ["queue_running_workers 0\n", "queue_running_job_processors 0\n"] {
        assert!(last.contains(none), "{last}");
    }
    assert!(last.contains(slow), "{last}");
}

#[test]
fn every_number_of_a_queue_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let readers = ["ada@x.org"; 15];
    run(at, &[&["send", "Hello"][..], &readers].concat());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mill = Mill::open(&format!("sqlite://{}", at.join("mail.db").display())).await.unwrap();
        let hour = When::After(Duration::from_secs(3_600));
        for (count, end) in [
            (5, Some(Outcome::Done)),
            (4, Some(Outcome::Fail("no such address".to_owned()))),
            (3, None),
            (2, Some(Outcome::Retry { at: hour, reason: None })),
        ] {
            claimed(&mill, count, end).await;
        }
        mill.close().await.unwrap();
    });
    let shown = run(at, &["show"]);
    let words = |begins: &str| {
        let line = shown.lines().find(|line| line.starts_with(begins)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(words("queue"), "queue total ready delayed processing failed done");
    assert_eq!(words("1 emails"), "1 emails 10 1 2 3 4 5");
}

/// Claims so many mails, and ends their attempts like this.
async fn claimed(mill: &Mill, count: usize, end: Option<Outcome>) {
    let request = ClaimRequest {
        queue: QueueName::new("emails").unwrap(),
        max: count,
        lease: None,
        worker: WorkerId::new("tester").unwrap(),
        source: None,
        token: Token::random().unwrap(),
    };
    let claim = mill.store().claim(request).await.unwrap();
    assert_eq!(claim.tasks.len(), count);
    let Some(end) = end else { return };
    let settle = |task: &ClaimedTask| Settlement::new(task.id, claim.token, end.clone());
    let answers = mill.store().settle(claim.tasks.iter().map(settle).collect()).await.unwrap();
    assert!(answers.iter().all(SettleAnswer::is_recorded), "{answers:?}");
}

#[test]
fn a_place_where_nothing_can_be_written_is_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (option, place) in [("--metrics", "gone/metrics.prom"), ("--outbox", "file")] {
        let output = command(folder.path(), &["work", option, place]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("mail-service: {place}: ")), "{told}");
    }
}

#[test]
fn whoever_reads_only_the_first_line_gets_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["show"][..], &["send", "Hello", "ada@x.org"], &["work", "--drain"]] {
        let mut running = Running::start(folder.path(), words);
        drop(running.0.stdout.take());
        let mut said = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(
            running.0.wait().unwrap().success() && !said.contains("panic"),
            "{words:?}: {said}"
        );
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
    assert_eq!(run(at, &["send", "Later", "busy+1@x.org"]).trim(), "1 mail put");
    eventually("a mail that came back once", || {
        run(at, &["show"]).lines().any(|line| line.starts_with("1 emails") && line.ends_with(" 4"))
    });
    drop(worker);
}
