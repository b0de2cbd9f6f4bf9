//! Hearing of what others put, and how little is asked while nothing happens.

use std::time::Duration;

use gristmill_core::{ClaimRequest, SettingsPatch, Start, Store, WakeMark};
use gristmill_postgres::PostgresStore;
use gristmill_postgres::tokio_postgres::{AsyncMessage, NoTls};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{application, asking, database_within, declare, name, put, store, task};
use crate::traffic::until;

/// What comes at all comes within this time, and less than who hears looks by
/// itself after.
const PATIENCE: Duration = Duration::from_secs(8);

/// Listens from now on; what came before is looked at.
async fn hears(store: &PostgresStore) -> WakeMark {
    store.mark();
    until("listening", async || store.hears_wake_ups()).await;
    store.mark()
}

async fn is_woken(store: &PostgresStore, since: WakeMark) {
    let queues = [name("q")];
    let wait = store.wait(&queues, since, Duration::from_secs(60));
    timeout(PATIENCE, wait).await.expect("it was not told").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_of_another_process_is_heard_of() {
    let database = database_within().await;
    let (worker, producer) = (store(&database.url()).await, store(&database.url()).await);
    declare(&producer, "q", SettingsPatch::default()).await;
    hears(&worker).await;
    // The notice goes along with a put, or after it: the second comes too soon
    // after the first.
    for _ in 0..20 {
        let mark = worker.mark();
        put(&producer, "q", vec![task("1")]).await;
        is_woken(&worker, mark).await;
    }
}

/// Who closes right after a put has told of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_words_before_a_close_are_heard() {
    let database = database_within().await;
    let worker = store(&database.url()).await;
    declare(&worker, "q", SettingsPatch::default()).await;
    hears(&worker).await;
    for _ in 0..5 {
        let producer = store(&database.url()).await;
        put(&producer, "q", vec![task("1")]).await;
        let mark = worker.mark();
        put(&producer, "q", vec![task("2")]).await;
        producer.close().await.unwrap();
        is_woken(&worker, mark).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_puts_does_not_listen() {
    let database = database_within().await;
    let producer = store(&database.url()).await;
    declare(&producer, "q", SettingsPatch::default()).await;
    for _ in 0..5 {
        put(&producer, "q", vec![task("1")]).await;
    }
    let application = application(&database.url()).await;
    let listens = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()
                      AND (query LIKE 'LISTEN%' OR query LIKE '%advisory_lock_shared%')";
    let listening = async || application.query_one(listens, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(listening().await, 0);
    assert!(!producer.hears_wake_ups());
    hears(&producer).await;
    assert_eq!(listening().await, 1, "that is what is looked for");
}

/// A worker of somebody's own, in any language.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_by_hand_hears_of_puts() {
    let database = database_within().await;
    let producer = store(&database.url()).await;
    declare(&producer, "q", SettingsPatch::default()).await;
    let (client, mut connection) =
        gristmill_postgres::tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    let (heard, mut notices) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notice) = message {
                let _ = heard.send(notice.payload().to_owned());
            }
        }
    });
    client.batch_execute("LISTEN \"gristmill.wake\"").await.unwrap();
    // Also when it is known that no process of the library listens.
    for _ in 0..3 {
        put(&producer, "q", vec![task("1")]).await;
        let words = timeout(PATIENCE, notices.recv()).await.expect("it was not told").unwrap();
        assert!(words.starts_with("q "), "{words}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_takes_back_wakes_the_others() {
    let database = database_within().await;
    let (worker, other) = (store(&database.url()).await, store(&database.url()).await);
    let lease = Some(Duration::from_secs(1));
    declare(&other, "q", SettingsPatch { lease, ..SettingsPatch::default() }).await;
    put(&other, "q", vec![task("1")]).await;
    hears(&worker).await;
    assert_eq!(other.claim(asking("q", 1)).await.unwrap().tasks.len(), 1);
    let mark = worker.mark();
    until("taken back", async || other.reclaim().await.unwrap() == 1).await;
    is_woken(&worker, mark).await;
}

/// It may run out before the others look again by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_shorter_than_usual_is_told_of() {
    let database = database_within().await;
    let (worker, other) = (store(&database.url()).await, store(&database.url()).await);
    declare(&other, "q", SettingsPatch::default()).await;
    put(&other, "q", vec![task("1")]).await;
    let mark = hears(&worker).await;
    let lease = Some(Duration::from_secs(2));
    let claim = other.claim(ClaimRequest { lease, ..asking("q", 1) }).await.unwrap();
    assert_eq!(claim.tasks.len(), 1);
    // Who sweeps sees it; nobody looks for work.
    until("it is told", async || worker.mark() != mark).await;
    let quiet = async || worker.sweep().await.unwrap().quiet;
    until("it is known", async || quiet().await.is_some_and(|quiet| quiet.as_secs() < 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_says_how_long_nothing_falls_due() {
    let database = database_within().await;
    let worker = store(&database.url()).await;
    declare(&worker, "q", SettingsPatch::default()).await;
    assert_eq!(worker.sweep().await.unwrap().quiet, None, "nothing is heard");
    hears(&worker).await;
    // Counts are folded first.
    let quiet = async || worker.sweep().await.unwrap().quiet;
    until("nothing is due", async || quiet().await.is_some()).await;
    assert_eq!(quiet().await, Some(Duration::from_secs(30)));
    let mut later = task("1");
    later.start = Start::After(Duration::from_secs(10));
    put(&worker, "q", vec![later]).await;
    until("it is delayed", async || quiet().await.is_some()).await;
    assert!(quiet().await.is_some_and(|quiet| quiet <= Duration::from_secs(10)));
    worker.reach().await.unwrap();
    worker.close().await.unwrap();
    assert!(worker.reach().await.is_err(), "it says when nobody is there");
}
