//! What a check finds: lost indexes and tables, emptied values, altered rows.

use gristmill_core::{SettingsPatch, Store, StoreError};
use gristmill_sqlite::SqliteStore;

use crate::support::{Place, claim, declare, keyed, put, sound, task};

/// A store with a task in each place, changed by hand.
async fn changed(by_hand: &str) -> (Place, SqliteStore) {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![keyed("a"), task("1"), task("2")]).await;
    claim(&store, "q", 1).await;
    sound(&store).await;
    store.close().await.unwrap();
    place.application().execute_batch(by_hand).unwrap();
    let store = SqliteStore::open(place.path(), place.options()).unwrap();
    (place, store)
}

#[tokio::test]
async fn what_is_missing_or_altered_is_found() {
    for (by_hand, named) in [
        ("DROP INDEX gristmill_task_place", "index gristmill_task_place is missing"),
        ("DROP VIEW gristmill_shown_done", "view gristmill_shown_done is missing"),
        ("DROP TABLE gristmill_blocked", "table gristmill_blocked is missing"),
        (
            "DROP INDEX gristmill_task_active;
             CREATE INDEX gristmill_task_active ON gristmill_task (queue, key)",
            "index gristmill_task_active is not as it was made",
        ),
        ("DELETE FROM gristmill_meta", "store_id is missing"),
        ("UPDATE gristmill_task SET headers = '[1]' WHERE id = 2", "task 2: a task's headers"),
        ("UPDATE gristmill_task SET history = 'x' WHERE id = 3", "task 3: a task's history"),
        ("UPDATE gristmill_task SET encoding = 9 WHERE id = 3", "task 3: a task's encoding"),
        ("UPDATE gristmill_task SET place = 7 WHERE id = 3", "task 3"),
        ("DELETE FROM gristmill_ready WHERE id = 2", "task 2"),
    ] {
        let (_place, store) = changed(by_hand).await;
        let findings = store.check().await.unwrap();
        let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|finding| finding.contains(named)), "{by_hand}: {said:?}");
        let grave = store.diagnose().await.unwrap();
        assert!(grave.iter().any(|found| found.code == "damaged" && found.grave), "{by_hand}");
    }
}

#[tokio::test]
async fn a_table_that_is_gone_is_damage_and_not_an_outage() {
    let (_place, store) = changed("DROP TABLE gristmill_done").await;
    let error = store.get(gristmill_core::TaskId(77)).await.expect_err("nothing can be read");
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
}
