//! Putting and completing in the application's own transaction.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use gristmill_core::{NewTask, Outcome, SettingsPatch, SettleAnswer, Store, StoreError};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_postgres::config::Host;
use tokio_postgres::{Config, NoTls};

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

/// A connection that counts how often an answer is read after something was sent.
struct Counted {
    stream: UnixStream,
    sent: bool,
    turns: Arc<AtomicUsize>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() && std::mem::take(&mut self.sent) {
            self.turns.fetch_add(1, Ordering::SeqCst);
        }
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.sent = true;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The application's connection may be far from its server.
#[tokio::test]
async fn a_put_and_a_completion_in_a_transaction_are_one_round_trip_each() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let settled = settlements(&claim(&store, "q", 1).await, &Outcome::Done);
    let config: Config = database.url().parse().unwrap();
    let (host, port) = (config.get_hosts(), config.get_ports());
    let [Host::Unix(folder)] = host else { panic!("a socket's folder: {host:?}") };
    let turns = Arc::new(AtomicUsize::new(0));
    let socket = folder.join(format!(".s.PGSQL.{}", port[0]));
    let stream = UnixStream::connect(socket).await.unwrap();
    let counted = Counted { stream, sent: false, turns: turns.clone() };
    let (mut client, connection) = config.connect_raw(counted, NoTls).await.unwrap();
    tokio::spawn(connection);
    let transaction = client.transaction().await.unwrap();
    let before = turns.load(Ordering::SeqCst);
    let (_, put) = store.put_in(&transaction, &request("q", vec![task("2")])).await.unwrap();
    assert_eq!(turns.load(Ordering::SeqCst) - before, 1, "the put");
    let (_, done) = store.complete_in(&transaction, &settled).await.unwrap();
    assert_eq!(turns.load(Ordering::SeqCst) - before, 2, "the completion");
    transaction.commit().await.unwrap();
    put.committed();
    done.committed();
    assert_eq!(stats(&store, "q").await.ready, 1);
}

/// Nothing is asked of another store, and the transaction can go on.
#[tokio::test]
async fn a_transaction_on_another_store_is_left_as_it_was() {
    let (ours, theirs) = (database_within().await, database_within().await);
    let mut application = application(&theirs.url()).await;
    // The tests' databases are copies of one.
    let another = "UPDATE gristmill.meta SET store_id = gen_random_uuid()";
    application.execute(another, &[]).await.unwrap();
    let (store, other) = (store(&ours.url()).await, store(&theirs.url()).await);
    for store in [&store, &other] {
        declare(store, "q", SettingsPatch::default()).await;
    }
    put(&store, "q", vec![task("1")]).await;
    let settled = settlements(&claim(&store, "q", 1).await, &Outcome::Done);
    let transaction = application.transaction().await.unwrap();
    let put = store.put_in(&transaction, &request("q", vec![task("1")])).await;
    assert!(matches!(put, Err(StoreError::Invalid(_))));
    let done = store.complete_in(&transaction, &settled).await;
    assert!(matches!(done, Err(StoreError::Invalid(_))));
    transaction.execute("SELECT 1", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(stats(&other, "q").await.total(), 0);
}
