//! What a check finds: lost indexes and tables, emptied values, altered rows.

use std::time::Duration;

use gristmill_core::{SettingsPatch, Store, StoreError};
use gristmill_sqlite::SqliteStore;

use crate::support::{Place, claim, declare, done, keyed, put, sound, stats, task};

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
        ("UPDATE gristmill_task SET headers = '[1]' WHERE id = 2", "task 2: its headers"),
        ("UPDATE gristmill_task SET history = 'x' WHERE id = 3", "task 3: its history"),
        ("UPDATE gristmill_task SET encoding = 9 WHERE id = 3", "task 3: its encoding"),
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

#[tokio::test]
async fn an_altered_payload_is_set_aside_and_never_handed_out() {
    for by_hand in [
        "UPDATE gristmill_task SET payload = CAST('9' AS BLOB) WHERE id = 2",
        "UPDATE gristmill_task SET encoding = 2 WHERE id = 2",
        "UPDATE gristmill_task SET headers = '[1]' WHERE id = 2",
    ] {
        for slots in [None, Some(4)] {
            let place = Place::new();
            let store = place.open();
            let patch = SettingsPatch { slots: Some(slots), ..SettingsPatch::default() };
            declare(&store, "q", patch).await;
            put(&store, "q", vec![task("1"), task("2"), task("3")]).await;
            place.application().execute_batch(by_hand).unwrap();
            let found = store.check().await.unwrap();
            assert!(matches!(&found[..], [one] if one.0.starts_with("task 2: ")), "{found:?}");
            let mut ran = Vec::new();
            loop {
                let taken = claim(&store, "q", 10).await;
                // Nothing but damaged ones: there may be more.
                if taken.tasks.is_empty() && taken.next_due != Some(Duration::ZERO) {
                    break;
                }
                ran.extend(taken.tasks.iter().map(|task| task.id.0));
                done(&store, &taken).await;
            }
            assert_eq!(ran, [1, 3], "{by_hand}: the others are not hidden");
            let aside = stats(&store, "q").await;
            assert_eq!((aside.failed, aside.total()), (1, 1), "it is counted");
        }
    }
}
