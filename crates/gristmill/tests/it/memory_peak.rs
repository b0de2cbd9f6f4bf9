//! Memory does not grow with what is put, nor with what is drained.

use std::process::Command;

use gristmill::Mill;
use gristmill::worker::Worker;

use crate::Mail;

/// Puts a million tasks from an iterator; run in a process of its own, because
/// the peak is a process's.
#[test]
#[ignore = "a child of the test below"]
fn million_child() {
    let Ok(folder) = std::env::var("GRISTMILL_MILLION") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mill = Mill::open(&format!("sqlite://{folder}/million.db")).await.unwrap();
        mill.declare::<Mail>().await.unwrap();
        let report = mill.put_all((0..1_000_000).map(Mail::to)).run().await.unwrap();
        assert_eq!(report.enqueued, 1_000_000);
        mill.close().await.unwrap();
    });
    let kilobytes = peak();
    assert!(kilobytes < 100 * 1024, "peak memory {kilobytes} kB");
}

/// The most memory this process ever had, in kilobytes.
fn peak() -> u64 {
    status("VmHWM")
}

/// The same without the program's own file: this one has every test in it, unoptimised,
/// and its code alone is more than a worker needs. What is in memory of a file stays.
fn peak_beside_code() -> u64 {
    peak().saturating_sub(status("RssFile"))
}

/// A line of what the system says of this process.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    println!("{line}");
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Drains what its parent put.
#[test]
#[ignore = "a child of the tests below"]
fn drain_child() {
    let Ok(folder) = std::env::var("GRISTMILL_DRAIN") else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mill = Mill::open(&format!("sqlite://{folder}/drain.db")).await.unwrap();
        let worker = Worker::new(&mill).handle(|_: Mail| async { Ok::<(), String>(()) });
        let report = worker.drain(true).run(std::future::pending()).await.unwrap();
        println!("{} drained", report.done);
        mill.close().await.unwrap();
    });
    let kilobytes = peak_beside_code();
    assert!(kilobytes < 16 * 1024, "peak memory {kilobytes} kB");
}

/// Puts so many tasks of a hundred bytes each and lets a process drain them.
fn drained(tasks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("sqlite://{}/drain.db", folder.path().display());
    let left = runtime.block_on(async {
        let mill = Mill::open(&url).await.unwrap();
        mill.declare::<Mail>().await.unwrap();
        mill.put_all((0..tasks).map(|n| Mail::to(format!("{n:0>90}")))).run().await.unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "memory_peak::drain_child", "--ignored", "--nocapture"]);
        let status = child.env("GRISTMILL_DRAIN", folder.path()).status().unwrap();
        assert!(status.success());
        mill.inspect().queue("mails").await.unwrap()
    });
    assert_eq!((left.total(), left.counters.done), (0, tasks as u64));
}

#[test]
fn a_draining_worker_stays_under_16_mb() {
    drained(20_000);
}

#[test]
#[ignore = "two hundred thousand tasks: long form"]
fn long_a_draining_worker_stays_under_16_mb() {
    drained(200_000);
}

#[test]
#[ignore = "a million tasks: long form"]
fn long_a_million_tasks_are_put_in_under_100_mb() {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory_peak::million_child", "--ignored", "--nocapture"])
        .env("GRISTMILL_MILLION", folder.path())
        .status()
        .unwrap();
    assert!(status.success());
}
