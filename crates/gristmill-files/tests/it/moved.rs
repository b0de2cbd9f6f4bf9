//! The folder is moved, deleted or replaced under an open process, as whoever
//! restores a backup may do.

use gristmill_core::{ListRequest, SettingsPatch, Store, StoreError};

use crate::support::{Place, copy_folder, declare, put, request, sound, stats, task};

/// That the store says what happened.
fn assert_moved<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let said = answer.expect_err("nothing is acknowledged").to_string();
    assert!(said.contains("moved, deleted or replaced"), "{said}");
}

#[tokio::test]
async fn a_moved_or_deleted_folder_takes_no_more_puts() {
    for deleted in [false, true] {
        let place = Place::new();
        let store = place.open();
        declare(&store, "q", SettingsPatch::default()).await;
        put(&store, "q", vec![task("1")]).await;
        if deleted {
            std::fs::remove_dir_all(place.path()).unwrap();
        } else {
            std::fs::rename(place.path(), place.path().with_extension("bad")).unwrap();
        }
        assert_moved(store.put(request("q", vec![task("2")])).await);
        assert_moved(store.list(ListRequest::default()).await);
        assert_moved(store.reclaim().await);
    }
}

#[tokio::test]
async fn a_replaced_folder_gives_no_number_twice() {
    let place = Place::new();
    let old = place.open();
    declare(&old, "q", SettingsPatch::default()).await;
    put(&old, "q", vec![task("1")]).await;
    let backup = place.path().with_extension("backup");
    copy_folder(&place.path(), &backup);
    put(&old, "q", vec![task("2")]).await;
    std::fs::rename(place.path(), place.path().with_extension("bad")).unwrap();
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
