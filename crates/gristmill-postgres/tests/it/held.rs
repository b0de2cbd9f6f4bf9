//! Somebody's transaction stays open, and holds keys, subjects or a lease: only
//! who needs those waits for it.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{
    ExtendAnswer, Extension, FollowUp, NewTask, Outcome, PutReport, SettingsPatch, Settlement,
    Store, StoreError,
};
use gristmill_pgserver::Database;
use gristmill_postgres::tokio_postgres::{Client, Transaction};
use gristmill_postgres::{PostgresStore, WakeGuard};
use tokio::task::JoinHandle;

use crate::support::{
    application, claim, database_within, declare, done, keyed, name, put, request, settlements,
    store, task,
};

/// Far longer than it takes, and far shorter than anybody should wait.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("nobody waits")
}

async fn with_queue() -> (Database, Arc<PostgresStore>) {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    (database, store)
}

/// Puts these keys in a transaction that stays open.
async fn hold<'a>(
    store: &PostgresStore,
    application: &'a mut Client,
    keys: &[&str],
) -> (Transaction<'a>, WakeGuard) {
    let open = application.transaction().await.unwrap();
    let theirs = keys.iter().map(|key| keyed(key)).collect();
    let (_, guard) = store.put_in(&open, &request("q", theirs)).await.unwrap();
    (open, guard)
}

/// Whether a statement of this database waits for a lock.
fn waits(database: &Database) -> bool {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
    database.psql(waiting).unwrap() != "0"
}

/// A put that goes on by itself.
fn begin(store: &Arc<PostgresStore>, task: NewTask, atomic: bool) -> JoinHandle<PutReport> {
    let store = store.clone();
    let request = gristmill_core::PutRequest { atomic, ..request("q", vec![task]) };
    tokio::spawn(async move { store.put(request).await.unwrap() })
}

/// Callers who put at the same time share a statement. One of them needs a key
/// that is held; the others are answered.
#[tokio::test]
async fn company_of_a_held_key_does_not_wait() {
    let (database, store) = with_queue().await;
    let mut application = application(&database.url()).await;
    let (open, guard) = hold(&store, &mut application, &["held"]).await;

    let mut rounds = Vec::new();
    let mut held = Vec::new();
    for round in 0..5 {
        let others: Vec<_> =
            (0..7).map(|n| begin(&store, keyed(&format!("{round}-{n}")), false)).collect();
        held.push(begin(&store, keyed("held"), false));
        rounds.extend(others);
    }
    for put in rounds {
        assert_eq!(soon(put).await.unwrap().enqueued(), 1);
    }
    assert!(held.iter().all(|put| !put.is_finished()), "the key is not decided yet");
    open.commit().await.unwrap();
    guard.committed();
    for put in held {
        assert_eq!(soon(put).await.unwrap().duplicates(), 1, "it stands now");
    }
}

/// More puts wait than there are connections, in groups and alone. Puts of the
/// same queue, claims, settlements and heartbeats have theirs.
#[tokio::test]
async fn many_held_puts_leave_connections_to_others() {
    let (database, store) = with_queue().await;
    put(&store, "q", vec![task("1"), task("2")]).await;
    let mut application = application(&database.url()).await;
    let keys: Vec<String> = (0..24).map(|n| format!("held-{n}")).collect();
    let named: Vec<&str> = keys.iter().map(String::as_str).collect();
    let (open, guard) = hold(&store, &mut application, &named).await;

    let held: Vec<_> =
        keys.iter().enumerate().map(|(n, key)| begin(&store, keyed(key), n % 2 == 0)).collect();
    let others = async {
        for n in 0..10 {
            assert_eq!(put(&store, "q", vec![keyed(&format!("free-{n}"))]).await.enqueued(), 1);
        }
        let taken = claim(&store, "q", 10).await;
        assert_eq!(taken.tasks.len(), 10);
        assert!(done(&store, &taken).await.iter().all(gristmill_core::SettleAnswer::is_recorded));
        store.sweep().await.unwrap();
    };
    soon(others).await;
    assert!(held.iter().all(|put| !put.is_finished()));
    open.rollback().await.unwrap();
    drop(guard);
    for put in held {
        assert_eq!(soon(put).await.unwrap().enqueued(), 1, "the key became free");
    }
}

/// Nobody hears the answer any more: it is not put when the key becomes free.
#[tokio::test]
async fn a_held_put_that_nobody_waits_for_is_let_go() {
    let (database, store) = with_queue().await;
    let mut application = application(&database.url()).await;
    let (open, guard) = hold(&store, &mut application, &["held"]).await;
    let impatient = begin(&store, keyed("held"), false);
    soon(async {
        while !waits(&database) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    impatient.abort();
    // A turn may be under way; another one would show in so many looks.
    let mut looks = 0;
    soon(async {
        while looks < 30 {
            looks = if waits(&database) { 0 } else { looks + 1 };
            tokio::task::yield_now().await;
        }
    })
    .await;
    open.rollback().await.unwrap();
    drop(guard);
    assert_eq!(put(&store, "q", vec![keyed("held")]).await.enqueued(), 1, "the key is free");
}

/// A handler settles in its own transaction and is not done with that. The
/// worker's other leases are prolonged, and its own one is not called lost.
#[tokio::test]
async fn a_lease_that_is_being_settled_holds_no_heartbeat_up() {
    let (database, store) = with_queue().await;
    put(&store, "q", vec![task("1"), task("2")]).await;
    let (first, second) = (claim(&store, "q", 1).await, claim(&store, "q", 1).await);
    let mut application = application(&database.url()).await;
    let open = application.transaction().await.unwrap();
    let settled = settlements(&first, &Outcome::Done);
    let (_, guard) = store.complete_in(&open, &settled).await.unwrap();

    let until = || {
        database.psql("SELECT min(until) > now() + interval '50 minutes' FROM gristmill.deadline")
    };
    let hour = Duration::from_secs(3600);
    let extensions = [&first, &second]
        .map(|claim| Extension::new(settlements(claim, &Outcome::Done)[0].token, hour));
    let answers = soon(store.extend(extensions.to_vec())).await.unwrap();
    for answer in &answers {
        assert!(matches!(answer, ExtendAnswer::Extended { .. }), "{answers:?}");
    }
    assert_eq!(until().unwrap().trim(), "t", "both have their hour");
    open.rollback().await.unwrap();
    drop(guard);
    assert!(done(&store, &first).await.iter().all(gristmill_core::SettleAnswer::is_recorded));
}

/// A settlement with a follow-up whose key is held says so; without it, and
/// with the key free, it is recorded.
#[tokio::test]
async fn a_held_follow_up_is_told_and_nothing_is_settled() {
    let (database, store) = with_queue().await;
    put(&store, "q", vec![task("1"), task("2")]).await;
    let taken = claim(&store, "q", 2).await;
    let mut application = application(&database.url()).await;
    let (open, guard) = hold(&store, &mut application, &["held"]).await;
    let mut both = settlements(&taken, &Outcome::Done);
    both[0].follow_ups = vec![FollowUp { queue: name("q"), task: keyed("held") }];

    let answer = soon(store.settle(both.clone())).await;
    assert!(matches!(answer, Err(StoreError::Held(_))), "{answer:?}");
    let other: Vec<Settlement> = both.split_off(1);
    assert!(soon(store.settle(other)).await.unwrap()[0].is_recorded());
    open.commit().await.unwrap();
    guard.committed();
    assert!(soon(store.settle(both)).await.unwrap()[0].is_recorded());
}
