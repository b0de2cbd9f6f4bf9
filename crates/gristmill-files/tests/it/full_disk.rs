//! A disk without room, or that may not be written: a clear answer, nothing
//! half-written, and work goes on once it is better.

use gristmill_conformance::small_disk::{self, SmallDisk};
use gristmill_core::{SettingsPatch, Store, StoreError};
use gristmill_files::FilesStore;

use crate::support::{Place, claim, declare, put, sound, task};

#[tokio::test]
async fn a_full_disk_is_told_and_survived() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(disk) = SmallDisk::mount(folder.path(), 4 << 20) else {
        return;
    };
    let options = Place::new().options();
    let store = FilesStore::open(folder.path().join("spool"), options).expect("a store");
    small_disk::a_full_disk_is_told_and_survived(&store, &disk).await;
    sound(&store).await;
    store.close().await.expect("closed");
}

#[tokio::test]
async fn a_folder_that_may_not_be_written_is_told_and_survived() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(disk) = SmallDisk::mount(folder.path(), 4 << 20) else {
        return;
    };
    let place = Place::new();
    let path = folder.path().join("spool");
    let store = FilesStore::open(&path, place.options()).expect("a store");
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    store.close().await.unwrap();
    disk.remount("ro");
    let refused = FilesStore::open(&path, place.options()).expect_err("read-only");
    let named = matches!(&refused, StoreError::Permission(said) if said.contains("spool"));
    assert!(named, "{refused:?}");
    disk.remount("rw");
    let store = FilesStore::open(&path, place.options()).expect("a store");
    assert_eq!(claim(&store, "q", 10).await.tasks.len(), 1);
    store.close().await.unwrap();
}
