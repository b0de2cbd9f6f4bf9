//! Several handles on one file, as several processes have them.

use std::time::Duration;

use gristmill_core::{Queue, SettingsPatch, Store, StoreError};
use gristmill_sqlite::{Options, SqliteStore};

use crate::support::{Place, claim, declare, done, name, put, sound, stats, task};

#[tokio::test]
async fn a_change_of_settings_is_seen_by_the_other_handle() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    declare(&one, "q", SettingsPatch::default()).await;
    put(&two, "q", vec![task("1")]).await;
    let capacity = SettingsPatch { capacity: Some(Some(1)), ..SettingsPatch::default() };
    one.override_queue(&name("q"), capacity, "me").await.unwrap();
    assert_eq!(put(&two, "q", vec![task("2")]).await[0].id(), None);
    one.pause_queue(&name("q"), true, "me").await.unwrap();
    assert!(claim(&two, "q", 1).await.paused);
    let queues: Vec<Queue> = two.queues().await.unwrap();
    assert_eq!(queues[0].settings.capacity, Some(1));
    sound(&one).await;
}

#[tokio::test]
async fn leases_are_settled_through_any_handle() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    declare(&one, "q", SettingsPatch::default()).await;
    put(&one, "q", vec![task("1"), task("2"), task("3")]).await;
    let taken = claim(&one, "q", 2).await;
    assert!(done(&two, &taken).await.iter().all(gristmill_core::SettleAnswer::is_recorded));
    let rest = claim(&two, "q", 9).await;
    assert_eq!(rest.tasks.len(), 1);
    one.close().await.unwrap();
    done(&two, &rest).await;
    assert_eq!(stats(&two, "q").await.total(), 0);
    sound(&two).await;
}

#[tokio::test]
async fn a_lock_held_too_long_answers_busy_and_writes_nothing() {
    let place = Place::new();
    let options = Options { busy_timeout: Duration::from_millis(50), ..place.options() };
    let store = SqliteStore::open(place.path(), options).expect("a store");
    declare(&store, "q", SettingsPatch::default()).await;
    let application = place.application();
    application.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = store.put(crate::support::request("q", vec![task("1")])).await;
    assert!(matches!(&answer, Err(StoreError::Busy(_))), "{answer:?}");
    assert!(answer.unwrap_err().is_retryable());
    // Readers are not held up.
    assert_eq!(stats(&store, "q").await.ready, 0);
    application.execute_batch("COMMIT").unwrap();
    assert!(put(&store, "q", vec![task("1")]).await[0].is_enqueued());
    sound(&store).await;
}

#[tokio::test]
async fn a_long_reader_does_not_stop_writers() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let mut application = place.application();
    let reading = application.transaction().unwrap();
    let count = |conn: &gristmill_sqlite::rusqlite::Connection| -> i64 {
        conn.query_row("SELECT count(*) FROM gristmill_task", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&reading), 0);
    put(&store, "q", (0..100).map(|_| task("1")).collect()).await;
    let taken = claim(&store, "q", 50).await;
    done(&store, &taken).await;
    assert_eq!(count(&reading), 0);
    drop(reading);
    assert_eq!(stats(&store, "q").await.ready, 50);
}

/// Beside busy producers the lock is nearly always taken: who only closes does
/// not wait for it.
#[tokio::test]
async fn closing_waits_for_no_lock() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    // Something that SQLite would like to look over at the end.
    for _ in 0..3 {
        put(&store, "q", (0..1_000).map(|_| task("1")).collect()).await;
    }
    store.stats().await.unwrap();
    let busy = place.application();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = std::time::Instant::now();
    store.close().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    busy.execute_batch("ROLLBACK").unwrap();
}
