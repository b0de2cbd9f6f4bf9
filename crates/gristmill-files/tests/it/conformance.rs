//! Runs the common behaviours on spools in a temporary folder, and random
//! histories against the memory store. Every spool is looked over afterwards.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gristmill_conformance::{Harness, history};
use gristmill_core::{Limits, ManualClock, Store};
use gristmill_files::{FilesStore, Options};
use tempfile::TempDir;

use crate::in_turns::InTurns;

/// Opens stores in a temporary folder; `open` begins a new one.
#[derive(Default)]
struct Spools {
    last: Mutex<Option<(TempDir, Arc<ManualClock>)>>,
}

impl Spools {
    fn path(&self) -> PathBuf {
        let last = self.last.lock().unwrap();
        last.as_ref().expect("opened before").0.path().join("spool")
    }

    fn store(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let options = Options { clock, limits, ..Options::default() };
        Arc::new(FilesStore::open(self.path(), options).expect("a store"))
    }
}

/// Looks the spool over as a doctor would, after whatever was done to it.
async fn look_over(folder: &TempDir, clock: Arc<ManualClock>) {
    let options = Options { clock, ..Options::default() };
    let store = FilesStore::open(folder.path().join("spool"), options).expect("a store");
    assert_eq!(store.check().await.expect("checked"), []);
    store.close().await.expect("closed");
}

impl Drop for Spools {
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
        looked.join().expect("the spool is sound");
    }
}

#[async_trait]
impl Harness for Spools {
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

    fn imports(&self) -> bool {
        true
    }
}

gristmill_conformance::suite!(Spools::default());

#[test]
fn histories_agree() {
    history::agree(&Spools::default(), history::cases());
}

/// As [`Spools`], but every call goes to another handle, and now and then to
/// one that has just read the folder: so catching up and opening are compared
/// with the memory store as well.
#[derive(Default)]
struct Turns(Spools);

#[async_trait]
impl Harness for Turns {
    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let first = self.0.open(clock.clone(), limits.clone()).await;
        let (folder, again) = (self.0.path(), (clock, limits));
        let open = move || {
            let (clock, limits) = again.clone();
            let options = Options { clock, limits, intent_bytes: 20_000, ..Options::default() };
            Arc::new(FilesStore::open(&folder, options).expect("a store")) as Arc<dyn Store>
        };
        Arc::new(InTurns::new(vec![first, open(), open()], Box::new(open)))
    }

    fn imports(&self) -> bool {
        true
    }
}

#[test]
fn histories_agree_when_handles_take_turns() {
    history::agree(&Turns::default(), history::cases() / 4);
}
