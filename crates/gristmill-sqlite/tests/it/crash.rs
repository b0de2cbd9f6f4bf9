//! Real processes on one file: killed at random, and cut off from their power.

use std::path::Path;
use std::sync::Arc;

use gristmill_conformance::crash::{self, Company, Opening};
use gristmill_core::Store;
use gristmill_sqlite::{Options, SqliteStore};

fn file(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("crash.db"), Options::default()).expect("the file opens clean")
}

fn open(folder: &Path) -> Opening<'_> {
    Box::pin(async move { Arc::new(file(folder)) as Arc<dyn Store> })
}

#[test]
#[ignore = "a child of the tests below"]
fn child() {
    crash::child(open);
}

#[test]
fn crash_killed_processes_lose_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    crash::survive_kills("crash::child", folder.path(), open);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let findings = runtime.block_on(file(&folder.path().join("store")).check()).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
}

fn cut(file_system: &'static str) {
    let folder = tempfile::tempdir().expect("a folder");
    crash::survive_power_cuts("crash::child", file_system, folder.path(), open);
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

#[test]
fn crash_no_answer_rests_on_a_sync_that_failed() {
    if let Some(why) = crash::obstacle() {
        println!("NOT RUN: {why}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    crash::tell_failed_syncs("crash::child", folder.path(), open, &[2, 3, 4, 5]);
}

#[test]
#[ignore = "needs root, loop devices and strace: long form"]
fn power_cut_after_every_call_that_failed_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    crash::survive_faults("crash::child", folder.path(), open, Company::Alone);
}

#[test]
#[ignore = "needs root, loop devices and strace: long form"]
fn power_cut_after_every_call_that_failed_beside_another_process() {
    let folder = tempfile::tempdir().expect("a folder");
    crash::survive_faults("crash::child", folder.path(), open, Company::Another);
}
