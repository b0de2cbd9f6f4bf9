//! Real processes on one folder: killed at random, and cut off from their power.

use std::path::Path;
use std::sync::Arc;

use gristmill_conformance::crash::{self, Opening};
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
    let findings = runtime.block_on(spool(&folder.path().join("store")).check()).unwrap();
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
