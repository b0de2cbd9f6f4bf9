//! Short ways to open a store on a clock of the test's own, and to use it.

use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use gristmill_conformance::short::{keyed, name, settlements, task};
use gristmill_core::ManualClock;
use gristmill_files::{FilesStore, Options};
use tempfile::TempDir;

/// A folder with a spool in it.
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
        self.folder.path().join("spool")
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: self.clock.clone(), ..Options::default() }
    }

    pub(crate) fn open(&self) -> Arc<FilesStore> {
        Arc::new(FilesStore::open(self.path(), self.options()).expect("a store"))
    }
}

gristmill_conformance::short_verbs!(FilesStore);

/// Asserts that the spool is sound and its parts agree.
pub(crate) async fn sound(store: &FilesStore) {
    assert_eq!(store.check().await.expect("checked"), []);
}
