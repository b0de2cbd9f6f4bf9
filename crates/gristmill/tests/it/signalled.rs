//! Programs that are told to stop by signals, while their handlers do not listen.
//!
//! A child is this test binary again: a program with
//! `Worker::run_until_signalled`, and nothing else of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::worker::{Context, STOP_NOW, Worker};
use gristmill::{Mill, signal};
use rustix::process::{Pid, Signal, kill_process};

use crate::Mail;

const TIMEOUT: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a program of the tests below, started by them"]
async fn program() {
    let Ok(url) = std::env::var("GRISTMILL_STOP_STORE") else { return };
    let how = std::env::var("GRISTMILL_STOP_HOW").unwrap();
    let mill = Mill::open(&url).await.unwrap();
    let worker = Worker::new(&mill).processors(2).batch(1);
    let worker = worker.stop_within(if how == "patient" {
        Duration::from_secs(30)
    } else {
        Duration::from_millis(300)
    });
    let report = worker
        .handle(move |_: Mail, _: Context| {
            println!("begun");
            let how = how.clone();
            async move {
                if how == "beside" {
                    tokio::task::spawn_blocking(blocks).await.unwrap();
                } else {
                    blocks();
                }
                Ok::<(), String>(())
            }
        })
        .run_until_signalled()
        .await
        .unwrap();
    println!("left {}", report.left.running);
}

/// Blocks its thread for ever.
fn blocks() {
    loop {
        std::thread::park();
    }
}

/// A program whose two handlers have begun.
struct Program {
    child: Child,
    said: BufReader<ChildStdout>,
    begun: Instant,
}

impl Program {
    fn start(url: &str, how: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signalled::program", "--ignored", "--nocapture"])
            .env("GRISTMILL_STOP_STORE", url)
            .env("GRISTMILL_STOP_HOW", how)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut program = Program { child, said, begun: Instant::now() };
        program.says("begun");
        program.begun = Instant::now();
        program.says("begun");
        program
    }

    fn says(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it did not say '{what}'");
        }
    }

    fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Its exit code, and how long it took since then.
    fn end(mut self, since: Instant) -> (Option<i32>, Duration) {
        let status = self.child.wait().unwrap();
        (status.code(), since.elapsed())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn store() -> (Mill, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let mill = Mill::open(&url).await.unwrap();
    mill.declare::<Mail>().lease(LEASE).with(|s| s.timeout = Some(TIMEOUT)).await.unwrap();
    mill.put_all(["a", "b"].map(Mail::to)).run().await.unwrap();
    (mill, url, folder)
}

/// Every thread of the runtime is blocked: the second signal ends the process
/// within two seconds, and another worker has the tasks when their lease is over.
#[tokio::test]
async fn a_second_signal_ends_a_process_whose_threads_are_all_blocked() {
    let (mill, url, _folder) = store().await;
    let program = Program::start(&url, "patient");
    program.terminate();
    // Two within a moment are one.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (begun, second) = (program.begun, Instant::now());
    program.terminate();
    let (code, took) = program.end(second);
    assert_eq!(code, Some(i32::from(signal::INTERRUPTED)));
    assert!(took < STOP_NOW, "{took:?}");
    let worker = Worker::new(&mill).handle(|_: Mail| async { Ok::<(), String>(()) });
    let worker = worker.start().await.unwrap();
    crate::until("both are done", async || worker.stats().report.done == 2).await;
    let within = TIMEOUT + LEASE + Duration::from_secs(1);
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
    worker.stop().await.unwrap();
}

/// One signal is enough where `stop_within` is short, for the runtime is not
/// waited for when handlers were left running.
#[tokio::test]
async fn a_stop_ends_the_process_though_its_runtime_would_wait_for_ever() {
    for how in ["blocked", "beside"] {
        let (_mill, url, _folder) = store().await;
        let mut program = Program::start(&url, how);
        let first = Instant::now();
        program.terminate();
        if how == "beside" {
            program.says("left 2");
        }
        let (code, took) = program.end(first);
        assert_eq!(code, Some(i32::from(signal::INTERRUPTED)), "{how}");
        assert!(took < Duration::from_millis(300) + STOP_NOW * 3, "{how}: {took:?}");
    }
}
