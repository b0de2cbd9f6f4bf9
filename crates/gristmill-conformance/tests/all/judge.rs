//! The judge on the memory store: clients in one process, and a verdict.

use std::sync::Arc;
use std::time::Duration;

use gristmill_conformance::judge;
use gristmill_core::Store;
use gristmill_core::memory::{MemoryOptions, MemoryStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_is_found_sound() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let time = Duration::from_secs(4);
    judge::together(&[store], folder.path(), "memory:", 1, time, true).await.expect("a run");
    let verdict = judge::judge_folder(folder.path()).expect("a run's folder");
    let told: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
    assert!(verdict.is_sound(), "{:?}\n{}", verdict.counted, told.join("\n"));
    // A run that saw too little proves nothing.
    let seen = &verdict.tally;
    println!("{seen:?}");
    assert!(seen.operations > 1_000 && seen.settled > 200, "{seen:?}");
    assert!(seen.redelivered > 5 && seen.stale_tried > 0, "{seen:?}");
    assert!(seen.duplicates > 5 && seen.replaced > 0 && seen.fired > 1, "{seen:?}");
}
