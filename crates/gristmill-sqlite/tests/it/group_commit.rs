//! Many callers share commits, and none suffers for another.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gristmill_core::{Durability, Outcome, PutAnswer, SettingsPatch, Store, StoreError, TaskId};

use crate::support::{Place, claim, declare, done, keyed, put, request, sound, stats, task};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_puts_are_all_answered_and_all_there() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let putting: Vec<_> = (0..200)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { put(&store, "q", vec![task(&n.to_string())]).await })
        })
        .collect();
    let mut ids: Vec<TaskId> = Vec::new();
    for one in putting {
        ids.extend(one.await.unwrap()[0].id());
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=200).map(TaskId).collect::<Vec<_>>());
    assert_eq!(stats(&store, "q").await.ready, 200);
    sound(&store).await;
}

/// A call whose request is with the store, and which has no answer yet.
async fn asked<F: Future>(call: F) -> Pin<Box<F>> {
    let mut call = Box::pin(call);
    let waits = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await;
    assert!(waits, "it was answered while the file was locked");
    call
}

#[tokio::test]
async fn neighbours_of_a_wrong_request_are_served() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    // Holding the file's lock gathers what follows in one group.
    let application = place.application();
    application.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut good = Vec::new();
    let mut wrong = Vec::new();
    for n in 0..20 {
        if n % 2 == 0 {
            good.push(asked(store.put(request("q", vec![task("1")]))).await);
        } else {
            let mut atomic = request("q", vec![task("1"), keyed("k"), keyed("k")]);
            atomic.atomic = true;
            wrong.push(asked(store.put(atomic)).await);
        }
    }
    application.execute_batch("COMMIT").unwrap();
    for one in good {
        assert_eq!(one.await.unwrap().enqueued(), 1);
    }
    for one in wrong {
        assert_eq!(one.await.unwrap().enqueued(), 0);
    }
    let stats = stats(&store, "q").await;
    assert_eq!((stats.ready, stats.counters.put, stats.counters.refused), (10, 10, 30));
    sound(&store).await;
}

#[tokio::test]
async fn refused_puts_take_no_numbers() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![keyed("a"), keyed("a")]).await;
    let mut atomic = request("q", vec![task("1"), keyed("a")]);
    atomic.atomic = true;
    store.put(atomic).await.unwrap();
    let answers = put(&store, "q", vec![task("2")]).await;
    assert_eq!(answers, [PutAnswer::Enqueued { id: TaskId(2) }]);
}

#[tokio::test]
async fn a_corrupt_row_fails_alone() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1"), task("2")]).await;
    let taken = claim(&store, "q", 2).await;
    place
        .application()
        .execute_batch("UPDATE gristmill_task SET attempts = -1 WHERE id = 1")
        .unwrap();
    let error = Outcome::Error("no".to_owned());
    let settle = |id: usize| {
        let all = crate::support::settlements(&taken, &error);
        let store = Arc::clone(&store);
        async move { store.settle(vec![all[id].clone()]).await }
    };
    let (bad, good) = tokio::join!(settle(0), settle(1));
    assert!(matches!(bad, Err(StoreError::Corrupt(_))), "{bad:?}");
    assert!(good.unwrap()[0].is_recorded());
    let found: Vec<String> = store.check().await.unwrap().iter().map(ToString::to_string).collect();
    assert!(matches!(&found[..], [one] if one.starts_with("task 1: ")), "{found:?}");
}

/// A history is for reading only: one that nobody can read holds nothing up.
#[tokio::test]
async fn a_task_with_rubbish_for_a_history_is_settled() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let taken = claim(&store, "q", 1).await;
    place.application().execute_batch("UPDATE gristmill_task SET history = 'rubbish'").unwrap();
    let error = crate::support::settlements(&taken, &Outcome::Error("no".to_owned()));
    assert!(store.settle(error).await.unwrap()[0].is_recorded());
    let back = store.get(TaskId(1)).await.unwrap().unwrap();
    assert_eq!((back.history.len(), back.damaged), (1, None));
    sound(&store).await;
}

#[tokio::test]
async fn a_relaxed_queue_is_synced_within_a_second() {
    let place = Place::new();
    let store = place.open();
    let relaxed =
        SettingsPatch { durability: Some(Durability::Relaxed), ..SettingsPatch::default() };
    declare(&store, "r", relaxed).await;
    put(&store, "r", vec![task("0")]).await;
    put(&store, "r", vec![task("1"), task("2")]).await;
    let taken = claim(&store, "r", 10).await;
    done(&store, &taken).await;
    let synced = || {
        let application = place.application();
        let at = "SELECT count(*) FROM gristmill_meta WHERE key = 'synced_at'";
        application.query_row(at, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let mut seen = synced();
    for _ in 0..40 {
        if seen == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        seen = synced();
    }
    assert_eq!(seen, 1);
    sound(&store).await;
}
