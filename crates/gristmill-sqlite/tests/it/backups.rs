//! A copy of the file while it is in use.

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
