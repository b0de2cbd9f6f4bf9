//! A copy of the file while it is in use.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use gristmill_core::{SettingsPatch, Store, StoreError};
use gristmill_sqlite::SqliteStore;

use crate::support::{Place, claim, declare, done, put, sound, stats, task};

#[tokio::test]
async fn a_copy_holds_what_stood_and_goes_its_own_way() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1"), task("2")]).await;
    let taken = claim(&store, "q", 1).await;
    store.backup(place.beside("copy.db")).await.unwrap();
    done(&store, &taken).await;

    let copy = SqliteStore::open(place.beside("copy.db"), place.options()).unwrap();
    sound(&copy).await;
    let standing = stats(&copy, "q").await;
    assert_eq!((standing.ready, standing.processing), (1, 1));
    let again = store.backup(place.beside("copy.db")).await;
    assert!(matches!(again, Err(StoreError::Invalid(_))));
    copy.close().await.unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path().parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_new_file_is_its_owners_and_a_copy_has_the_originals_mode() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(mode(&place.path()), 0o600);
    for wanted in [0o600, 0o640] {
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(wanted)).unwrap();
        let copy = place.beside(&format!("{wanted:o}.db"));
        store.backup(&copy).await.unwrap();
        assert_eq!(mode(&copy), wanted);
    }
    store.close().await.unwrap();
    assert_eq!(names(&place), ["600.db", "640.db", "queue.db"], "nothing else is left");
}

#[tokio::test]
async fn a_backup_does_not_write_through_a_link() {
    let place = Place::new();
    let store = place.open();
    symlink(place.beside("victim"), place.beside("dangling")).unwrap();
    let refused = store.backup(place.beside("dangling")).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    assert!(!place.beside("victim").exists());
}

#[tokio::test]
async fn what_a_killed_backup_left_is_no_store_and_blocks_nothing() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let left = place.beside("copy.db.0123abcd.partial");
    std::fs::write(&left, "").unwrap();
    let running = place.beside("copy.db.4567cdef.partial");
    std::fs::write(&running, "").unwrap();
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    std::fs::File::options().write(true).open(&left).unwrap().set_modified(yesterday).unwrap();
    store.backup(place.beside("copy.db")).await.unwrap();
    assert!(!left.exists(), "it is not written any more");
    assert!(running.exists(), "it may be another backup's, which runs");
    let options = gristmill_sqlite::Options { create: false, ..place.options() };
    let looked = SqliteStore::open(&running, options).expect_err("no store");
    assert!(matches!(&looked, StoreError::NotAStore(said) if said.contains("partial")), "{looked}");
    assert_eq!(std::fs::metadata(&running).unwrap().len(), 0, "looking changes nothing");
}
