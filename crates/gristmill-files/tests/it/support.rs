//! Short ways to open a store on a clock of the test's own, and to use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use gristmill_conformance::short::{keyed, name, request, settlements, task};
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

/// Copies a folder as it stands.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Where a segment's frames end: behind them there is room.
pub(crate) fn used(segment: &[u8]) -> usize {
    segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}
