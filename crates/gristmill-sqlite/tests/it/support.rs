//! Short ways to open a store on a clock of the test's own, and to use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use gristmill_conformance::short::{keyed, name, request, settlements, task};
use gristmill_core::ManualClock;
use gristmill_sqlite::rusqlite::Connection;
use gristmill_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// A folder with a store's file in it.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place {
            folder: tempfile::tempdir().expect("a folder"),
            clock: Arc::new(ManualClock::default()),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("queue.db")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: self.clock.clone(), ..Options::default() }
    }

    pub(crate) fn open(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(self.path(), self.options()).expect("a store"))
    }

    /// The application's own connection to the same file.
    pub(crate) fn application(&self) -> Connection {
        connection(&self.path())
    }
}

pub(crate) fn connection(path: &Path) -> Connection {
    let conn = Connection::open(path).expect("a connection");
    conn.busy_timeout(Duration::from_secs(10)).expect("set");
    conn
}

gristmill_conformance::short_verbs!(SqliteStore);

/// Asserts that the file is sound and its parts agree.
pub(crate) async fn sound(store: &SqliteStore) {
    assert_eq!(store.check().await.expect("checked"), []);
}
