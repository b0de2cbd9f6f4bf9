//! The file is moved, deleted or replaced under an open process, as whoever
//! restores a backup may do.

use std::path::{Path, PathBuf};

use gristmill_core::{ListRequest, SettingsPatch, Store, StoreError};

use crate::support::{Place, declare, name, put, request, sound, stats, task};

/// The file and what lies beside it.
fn parts(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| PathBuf::from(format!("{}{end}", path.display())))
}

/// That the store says what happened.
fn assert_moved<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let said = answer.expect_err("nothing is acknowledged").to_string();
    assert!(said.contains("moved, deleted or replaced"), "{said}");
}

#[tokio::test]
async fn a_deleted_file_takes_no_more_puts() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    for part in parts(&place.path()) {
        std::fs::remove_file(part).unwrap();
    }
    assert_moved(store.put(request("q", vec![task("2")])).await);
    assert_moved(store.stats().await);
    assert_moved(store.list(ListRequest::default()).await);
    assert_moved(store.reclaim().await);
    assert_moved(store.find(&name("q"), &["k".to_owned()]).await);
}

#[tokio::test]
async fn a_replaced_file_gives_no_number_twice() {
    let place = Place::new();
    let old = place.open();
    declare(&old, "q", SettingsPatch::default()).await;
    put(&old, "q", vec![task("1")]).await;
    let backup = place.beside("backup.db");
    old.backup(&backup).await.unwrap();
    put(&old, "q", vec![task("2")]).await;
    for (part, away) in parts(&place.path()).iter().zip(parts(&place.beside("bad.db"))) {
        std::fs::rename(part, away).unwrap();
    }
    std::fs::rename(&backup, place.path()).unwrap();
    let new = place.open();
    let first = put(&new, "q", vec![task("\"new\"")]).await;
    assert_moved(old.put(request("q", vec![task("\"stale\"")])).await);
    old.close().await.unwrap();
    // The old one's end does the new one no harm, and who opens again goes on
    // with it.
    let again = place.open();
    assert_eq!(stats(&again, "q").await.ready, 2);
    let second = put(&again, "q", vec![task("\"next\"")]).await;
    assert!(second[0].is_enqueued() && second[0].id() != first[0].id());
    assert_eq!(stats(&new, "q").await.ready, 3);
    sound(&again).await;
}
