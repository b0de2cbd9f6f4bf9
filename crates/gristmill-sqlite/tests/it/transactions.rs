//! Putting and completing in the application's own transaction.

use std::time::Duration;

use gristmill_core::{FollowUp, Outcome, SettingsPatch, SettleAnswer, Store, StoreError};

use crate::support::{
    Place, claim, declare, done, keyed, name, put, request, settlements, sound, stats, task,
};

#[tokio::test]
async fn a_put_stands_when_the_transaction_does() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("0")]).await;
    let mut application = place.application();
    application.execute_batch("CREATE TABLE item (id INTEGER)").unwrap();
    for keep in [false, true] {
        let transaction = application.transaction().unwrap();
        transaction.execute_batch("INSERT INTO item VALUES (1)").unwrap();
        let tasks = vec![task("1"), keyed("k"), keyed("k")];
        let (report, guard) = store.put_in(&transaction, &request("q", tasks)).unwrap();
        assert_eq!((report.enqueued(), report.duplicates()), (2, 1));
        if keep {
            transaction.commit().unwrap();
            guard.committed();
        } else {
            transaction.rollback().unwrap();
            drop(guard);
        }
        assert_eq!(stats(&store, "q").await.ready, if keep { 3 } else { 1 });
    }
    let taken = claim(&store, "q", 9).await;
    let ids: Vec<i64> = taken.tasks.iter().map(|task| task.id.0).collect();
    assert_eq!(ids, [1, 2, 3], "a rolled-back put takes no numbers");
    done(&store, &taken).await;
    sound(&store).await;
}

#[tokio::test]
async fn the_guard_wakes_a_waiter() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let mark = store.mark();
    let mut application = place.application();
    let transaction = application.transaction().unwrap();
    let (_, guard) = store.put_in(&transaction, &request("q", vec![task("1")])).unwrap();
    transaction.commit().unwrap();
    guard.committed();
    // Far below the store's own patience: the mark is already behind.
    let queues = [name("q")];
    let waited = store.wait(&queues, mark, Duration::from_secs(60));
    tokio::time::timeout(Duration::from_secs(5), waited).await.expect("woken").unwrap();
}

#[tokio::test]
async fn an_effect_and_its_completion_are_one() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![keyed("a"), task("2")]).await;
    let taken = claim(&store, "q", 2).await;
    put(&store, "q", vec![keyed("a")]).await;
    let mut application = place.application();
    application.execute_batch("CREATE TABLE effect (id INTEGER)").unwrap();
    let endings = settlements(&taken, &Outcome::Done);
    let transaction = application.transaction().unwrap();
    transaction.execute_batch("INSERT INTO effect VALUES (1)").unwrap();
    let (answers, guard) = store.complete_in(&transaction, &endings).unwrap();
    assert!(answers.iter().all(SettleAnswer::is_recorded));
    transaction.commit().unwrap();
    guard.committed();
    assert_eq!(done(&store, &taken).await, [SettleAnswer::Gone, SettleAnswer::Gone]);
    // The one that waited behind the key came into the order with it.
    assert_eq!(claim(&store, "q", 9).await.tasks.len(), 1);
    sound(&store).await;
}

#[tokio::test]
async fn a_refused_follow_up_completes_nothing_and_leaves_the_transaction_usable() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![keyed("a"), task("2"), task("3")]).await;
    let taken = claim(&store, "q", 3).await;
    let mut application = place.application();
    application.execute_batch("CREATE TABLE effect (id INTEGER)").unwrap();
    let mut endings = settlements(&taken, &Outcome::Done);
    let follow_up = |queue| FollowUp { queue: name(queue), task: task("next") };
    endings[1].follow_ups = vec![follow_up("q"), follow_up("nobody")];
    let transaction = application.transaction().unwrap();
    transaction.execute_batch("INSERT INTO effect VALUES (1)").unwrap();
    let refused = store.complete_in(&transaction, &endings).map(drop);
    let why = "the follow-up to 'nobody' was refused: there is no queue 'nobody'".to_owned();
    assert_eq!(refused, Err(StoreError::invalid(why)));
    // Nothing of the call stands, and the transaction goes on.
    endings[1].follow_ups.pop();
    let (answers, guard) = store.complete_in(&transaction, &endings).unwrap();
    assert!(answers.iter().all(SettleAnswer::is_recorded), "{answers:?}");
    transaction.commit().unwrap();
    guard.committed();
    let effects: i64 =
        application.query_row("SELECT count(*) FROM effect", [], |row| row.get(0)).unwrap();
    assert_eq!(effects, 1);
    assert_eq!(claim(&store, "q", 9).await.tasks.len(), 1, "the one follow-up");
    sound(&store).await;
}

#[tokio::test]
async fn a_transaction_on_another_file_is_refused() {
    let (place, other) = (Place::new(), Place::new());
    let (store, _stranger) = (place.open(), other.open());
    declare(&store, "q", SettingsPatch::default()).await;
    for mut conn in [other.application(), crate::support::connection(&other.beside("plain.db"))] {
        let transaction = conn.transaction().unwrap();
        let refused = store.put_in(&transaction, &request("q", vec![task("1")]));
        assert!(matches!(refused, Err(StoreError::Invalid(_))));
    }
}
