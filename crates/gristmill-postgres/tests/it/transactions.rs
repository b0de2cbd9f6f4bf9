//! Putting and completing in the application's own transaction.

use std::time::Duration;

use gristmill_core::{NewTask, Outcome, SettingsPatch, SettleAnswer, Store, StoreError};

use crate::support::{
    application, claim, database_within, declare, done, keyed, name, put, request, settlements,
    stats, store, task,
};

#[tokio::test]
async fn a_put_stands_when_the_transaction_does() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let mut application = application(&database.url()).await;
    for keep in [false, true] {
        let transaction = application.transaction().await.unwrap();
        let tasks = vec![task("1"), keyed("k"), keyed("k")];
        let (report, guard) = store.put_in(&transaction, &request("q", tasks)).await.unwrap();
        assert_eq!((report.enqueued(), report.duplicates()), (2, 1));
        assert_eq!(stats(&store, "q").await.ready, 0, "nobody sees it yet");
        if keep {
            transaction.commit().await.unwrap();
            guard.committed();
        } else {
            transaction.rollback().await.unwrap();
            drop(guard);
        }
        assert_eq!(stats(&store, "q").await.ready, if keep { 2 } else { 0 });
    }
}

#[tokio::test]
async fn the_guard_wakes_a_waiter() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let mut application = application(&database.url()).await;
    let transaction = application.transaction().await.unwrap();
    let mark = store.mark();
    let (_, guard) = store.put_in(&transaction, &request("q", vec![task("1")])).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    let queues = [name("q")];
    let waited = store.wait(&queues, mark, Duration::from_secs(60));
    tokio::time::timeout(Duration::from_secs(5), waited).await.expect("woken").unwrap();
}

#[tokio::test]
async fn an_effect_and_its_completion_are_one() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let mut application = application(&database.url()).await;
    let taken = claim(&store, "q", 1).await;
    let settled = settlements(&taken, &Outcome::Done);
    let transaction = application.transaction().await.unwrap();
    let (answers, guard) = store.complete_in(&transaction, &settled).await.unwrap();
    assert!(answers[0].is_recorded());
    transaction.rollback().await.unwrap();
    drop(guard);
    assert_eq!(stats(&store, "q").await.processing, 1, "undone with the effect");
    let transaction = application.transaction().await.unwrap();
    let (_, guard) = store.complete_in(&transaction, &settled).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    assert_eq!(done(&store, &taken).await, [SettleAnswer::Gone], "which is success");
}

#[tokio::test]
async fn another_database_is_refused() {
    let (here, there) = (database_within().await, database_within().await);
    let store = store(&here.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    // Both came from one template, so the other store needs an id of its own.
    there.psql("UPDATE gristmill.meta SET store_id = gen_random_uuid()").unwrap();
    let mut application = application(&there.url()).await;
    let transaction = application.transaction().await.unwrap();
    let answer = store.put_in(&transaction, &request("q", vec![task("1")])).await;
    assert!(matches!(answer, Err(StoreError::Invalid(_))), "{answer:?}");
}

/// A caller's transaction with a put, a claim's settlement and a replacement
/// in it is left open: puts, claims and settlements of everybody else go on.
#[tokio::test]
async fn an_open_transaction_blocks_nobody() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![keyed("theirs"), task("1"), task("2")]).await;
    let first = claim(&store, "q", 1).await;
    let mut application = application(&database.url()).await;
    let open = application.transaction().await.unwrap();
    let theirs = vec![keyed("mine"), NewTask { priority: -5, ..task("urgent") }];
    let (_, put_guard) = store.put_in(&open, &request("q", theirs)).await.unwrap();
    let settled = settlements(&first, &Outcome::Done);
    let (_, done_guard) = store.complete_in(&open, &settled).await.unwrap();

    let others = async {
        put(&store, "q", vec![keyed("other"), task("3")]).await;
        // Behind the key whose end is not committed: it waits, nobody else.
        put(&store, "q", vec![keyed("theirs")]).await;
        let taken = claim(&store, "q", 10).await;
        assert_eq!(taken.tasks.len(), 4, "everything but what is open: {taken:?}");
        assert!(done(&store, &taken).await.iter().all(SettleAnswer::is_recorded));
        store.sweep().await.unwrap();
        assert!(claim(&store, "q", 10).await.tasks.is_empty());
    };
    tokio::time::timeout(Duration::from_secs(20), others).await.expect("nobody waits");
    open.commit().await.unwrap();
    drop((put_guard, done_guard));
    store.sweep().await.unwrap();
    let late = claim(&store, "q", 10).await;
    assert_eq!(late.tasks.len(), 3, "what was committed late is found: {late:?}");
}
