//! Several handles on one folder, as several processes have them.

use std::time::Duration;

use gristmill_core::{Outcome, SettingsPatch, Store, StoreError};
use gristmill_files::{FilesStore, Options};

use crate::support::{
    Place, claim, declare, done, keyed, name, put, settlements, sound, stats, task,
};

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
    sound(&one).await;
    sound(&two).await;
}

#[tokio::test]
async fn a_key_is_taken_and_freed_for_every_handle() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    declare(&one, "q", SettingsPatch::default()).await;
    put(&one, "q", vec![keyed("k")]).await;
    let held = claim(&two, "q", 10).await;
    assert_eq!(held.tasks.len(), 1);
    assert!(put(&one, "q", vec![keyed("k")]).await[0].is_enqueued());
    assert_eq!(stats(&two, "q").await.blocked, 1);
    assert!(claim(&one, "q", 10).await.tasks.is_empty());
    done(&one, &held).await;
    assert_eq!(claim(&two, "q", 10).await.tasks.len(), 1);
    sound(&one).await;
}

/// The other handle sleeps through more segments than are kept.
#[tokio::test]
async fn a_handle_that_is_far_behind_reads_the_folder_again() {
    let place = Place::new();
    let small = Options { intent_bytes: 2_000, ..place.options() };
    let one = FilesStore::open(place.path(), small).unwrap();
    let two = place.open();
    declare(&one, "q", SettingsPatch::default()).await;
    put(&two, "q", vec![task("0")]).await;
    for round in 0..200 {
        put(&one, "q", vec![task(&round.to_string())]).await;
        let taken = claim(&one, "q", 1).await;
        one.settle(settlements(&taken, &Outcome::Fail("no".to_owned()))).await.unwrap();
    }
    let stats = stats(&two, "q").await;
    assert_eq!((stats.ready, stats.failed, stats.counters.put), (1, 200, 201));
    sound(&two).await;
    sound(&one).await;
}

#[tokio::test]
async fn a_folder_that_is_locked_too_long_is_busy() {
    let place = Place::new();
    let options = Options { busy_timeout: Duration::from_millis(50), ..place.options() };
    let store = FilesStore::open(place.path(), options).unwrap();
    declare(&store, "q", SettingsPatch::default()).await;
    let lock = std::fs::File::open(place.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let error = store.stats().await.expect_err("locked");
    assert!(matches!(error, StoreError::Busy(_)), "{error}");
    assert!(error.is_retryable());
    lock.unlock().unwrap();
    assert_eq!(stats(&store, "q").await.ready, 0);
}

#[tokio::test]
async fn payloads_do_not_stay_in_memory() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let before = resident();
    for n in 0u8..100 {
        let payload = gristmill_core::Payload::raw(vec![n; 1 << 20]);
        put(&store, "q", vec![gristmill_core::NewTask::new(payload)]).await;
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 60 << 20, "100 MiB stand in the folder, and memory grew by {grown} bytes");
    let first = claim(&store, "q", 1).await;
    assert_eq!(first.tasks[0].payload.bytes, vec![0; 1 << 20]);
}

/// This process's memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
