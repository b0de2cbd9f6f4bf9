//! Memory does not grow with what is put.

use std::process::Command;

use gristmill::Mill;

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
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{peak}");
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 100 * 1024, "peak memory {kilobytes} kB");
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
