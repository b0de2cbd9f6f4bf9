//! Runs the common behaviours on files in a temporary folder, and random
//! histories against the memory store. Every file is looked over afterwards.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gristmill_conformance::{Harness, history};
use gristmill_core::{Limits, ManualClock, Store};
use gristmill_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// Opens stores in a temporary folder; `open` begins a new one.
#[derive(Default)]
struct Files {
    last: Mutex<Option<(TempDir, Arc<ManualClock>)>>,
}

impl Files {
    fn path(&self) -> PathBuf {
        let last = self.last.lock().unwrap();
        last.as_ref().expect("opened before").0.path().join("queue.db")
    }

    fn store(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let options = Options { clock, limits, ..Options::default() };
        Arc::new(SqliteStore::open(self.path(), options).expect("a store"))
    }
}

/// Looks the file over as a doctor would, after whatever was done to it.
async fn look_over(folder: &TempDir, clock: Arc<ManualClock>) {
    let options = Options { clock, ..Options::default() };
    let store = SqliteStore::open(folder.path().join("queue.db"), options).expect("a store");
    assert_eq!(store.check().await.expect("checked"), []);
    store.close().await.expect("closed");
}

impl Drop for Files {
    fn drop(&mut self) {
        let Some((folder, clock)) = self.last.lock().unwrap().take() else {
            return;
        };
        if std::thread::panicking() {
            return;
        }
        // A runtime cannot be made within a runtime, so a thread has it.
        let looked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(look_over(&folder, clock));
        });
        looked.join().expect("the file is sound");
    }
}

#[async_trait]
impl Harness for Files {
    fn imports(&self) -> bool {
        true
    }

    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let folder = tempfile::tempdir().expect("a folder");
        let before = self.last.lock().unwrap().replace((folder, clock.clone()));
        if let Some((folder, clock)) = before {
            look_over(&folder, clock).await;
        }
        self.store(clock, limits)
    }

    async fn reopen(&self, clock: Arc<ManualClock>, limits: Limits) -> Option<Arc<dyn Store>> {
        Some(self.store(clock, limits))
    }
}

gristmill_conformance::suite!(Files::default());

#[test]
fn histories_agree() {
    history::agree(&Files::default(), history::cases());
}
