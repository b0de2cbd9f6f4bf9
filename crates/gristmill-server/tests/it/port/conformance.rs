//! The common behaviours and random histories over HTTP: a service over a memory store,
//! and one over SQLite, both on the test's clock, which the client knows nothing of.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gristmill_conformance::{Harness, LIMIT, behaviours, check, history};
use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::{Limits, ManualClock, Store};
use gristmill_sqlite::SqliteStore;
use tempfile::TempDir;

use super::{Serving, remote, serve};

/// Opens a store of some kind and serves it; a second handle is a second client.
#[derive(Default)]
struct Served {
    /// Whether in a file.
    in_file: bool,
    last: Mutex<Option<(Serving, Option<TempDir>)>>,
}

impl Served {
    fn in_file() -> Self {
        Served { in_file: true, ..Served::default() }
    }

    async fn client(&self) -> Arc<dyn Store> {
        let address = self.last.lock().unwrap().as_ref().unwrap().0.address;
        Arc::new(remote(address, None).await)
    }
}

#[async_trait]
impl Harness for Served {
    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let folder = self.in_file.then(|| tempfile::tempdir().unwrap());
        let store: Arc<dyn Store> = match &folder {
            None => Arc::new(MemoryStore::new(MemoryOptions {
                clock,
                limits,
                ..MemoryOptions::default()
            })),
            Some(folder) => {
                let options = gristmill_sqlite::Options { clock, limits, ..Default::default() };
                Arc::new(SqliteStore::open(folder.path().join("queue.db"), options).unwrap())
            }
        };
        let serving = serve(store).await;
        drop(self.last.lock().unwrap().replace((serving, folder)));
        self.client().await
    }

    async fn reopen(&self, _: Arc<ManualClock>, _: Limits) -> Option<Arc<dyn Store>> {
        Some(self.client().await)
    }

    async fn after_kill(&self, _: Arc<ManualClock>, _: Limits) -> Option<Arc<dyn Store>> {
        // Of the client: what the service's store survives is another test's.
        if self.in_file { Some(self.client().await) } else { None }
    }

    fn imports(&self) -> bool {
        true
    }
}

mod over_memory {
    use super::Served;

    gristmill_conformance::suite!(Served::default());
}

#[test]
#[ignore = "long: the whole suite once more"]
fn long_the_suite_holds_over_sqlite() {
    for behaviour in behaviours() {
        let checked = check(behaviour, Arc::new(Served::in_file()), LIMIT, behaviour.name);
        assert_eq!(checked, Ok(()), "{}", behaviour.name);
    }
}

#[test]
fn histories_agree_over_memory() {
    history::agree(&Served::default(), history::cases() / 4);
}

#[test]
fn histories_agree_over_sqlite() {
    history::agree(&Served::in_file(), history::cases() / 16);
}
