//! Real processes on one folder: killed at random, and cut off from their power.

use std::path::Path;
use std::sync::Arc;

use gristmill_conformance::crash::{self, KillPlan, Opening, PowerPlan, Verdict};
use gristmill_core::Store;
use gristmill_files::{FilesStore, Options};

fn spool(folder: &Path) -> FilesStore {
    // Checkpoints come often, so that many a kill meets one.
    let options = Options { intent_bytes: 40_000, ..Options::default() };
    FilesStore::open(folder.join("spool"), options).expect("the spool opens clean")
}

fn open(folder: &Path) -> Opening<'_> {
    Box::pin(async move { Arc::new(spool(folder)) as Arc<dyn Store> })
}

fn long() -> bool {
    std::env::var_os("GRISTMILL_LONG").is_some()
}

#[test]
#[ignore = "a child of the tests below"]
fn child() {
    crash::child(open);
}

fn assert_sound(verdict: &Verdict) {
    println!("{:?}", verdict.tally);
    assert!(verdict.faults.is_empty(), "{:#?}", verdict.faults);
}

#[test]
fn crash_killed_processes_lose_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let kills = if long() { 300 } else { 25 };
    let plan = KillPlan { child: "crash::child", kills, producers: 2, workers: 3 };
    let verdict = crash::kills(&plan, folder.path(), open);
    assert_sound(&verdict);
    // A run that saw too little proves nothing.
    let seen = verdict.tally;
    assert!(seen.puts > kills * 10, "{seen:?}");
    assert!(seen.settled > kills, "{seen:?}");
    assert!(seen.redelivered > kills / 5, "{seen:?}");
    // Who holds a task past its lease must live that long; in a short run on
    // a busy machine nobody may.
    assert!(!long() || seen.stale_tried > 10, "{seen:?}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let findings = runtime.block_on(spool(&folder.path().join("store")).check()).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
}

fn cut(file_system: &'static str) {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = PowerPlan { child: "crash::child", cuts: 25, file_system };
    let verdict = crash::power_cuts(&plan, folder.path(), open).expect("root and loop devices");
    assert_sound(&verdict);
    assert!(verdict.tally.puts > 500, "{:?}", verdict.tally);
    assert!(verdict.tally.settled > 100, "{:?}", verdict.tally);
}

#[test]
#[ignore = "needs root and loop devices: long form"]
fn power_cut_on_ext4_loses_nothing_acknowledged() {
    cut("ext4");
}

#[test]
#[ignore = "needs root and loop devices: long form"]
fn power_cut_on_xfs_loses_nothing_acknowledged() {
    cut("xfs");
}
