//! Another server takes over: everything goes on there, and nothing that was
//! acknowledged is lost on the way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{Declaration, Diagnosis, Outcome, SettingsPatch, Store, StoreError};
use gristmill_pgserver::{PrivateServer, Server};
use gristmill_postgres::PostgresStore;

use crate::silence::made;
use crate::support::{application, claim, declare, name, put, request, settlements, stats, task};
use crate::traffic::{Traffic, open, until};

/// A primary and two standbys. The first of them has whatever was acknowledged.
struct Trio {
    primary: PrivateServer,
    first: PrivateServer,
    second: PrivateServer,
}

impl Trio {
    async fn start() -> Self {
        made(|| {
            let primary = Server::primary()?;
            let (first, second) = std::thread::scope(|scope| {
                let first = scope.spawn(|| primary.standby("alpha"));
                let second = primary.standby("beta");
                (first.join().expect("no panic"), second)
            });
            let (first, second) = (first?, second?);
            // The one that takes over, and no other: where the old primary is not
            // fenced it must not be able to acknowledge anything any more.
            primary.set("synchronous_standby_names", "FIRST 1 (alpha)")?;
            Ok(Trio { primary, first, second })
        })
        .await
    }

    /// All three, in this order.
    fn url(&self) -> String {
        let ports = [self.primary.port(), self.first.port(), self.second.port()];
        self.primary.tcp_url_over(&ports, "postgres")
    }

    /// The first standby takes over.
    fn fail_over(&self) {
        self.first.promote().unwrap();
        // Nobody follows it yet.
        self.first.set("synchronous_standby_names", "").unwrap();
    }
}

/// As Aurora does it, and a switchover that leaves connections alone: they stay,
/// and every write over them is refused (25006).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_demoted_primary_everything_moves_on() {
    let trio = Trio::start().await;
    let traffic = Traffic::start(&trio.url()).await;
    trio.primary.demote().unwrap();
    trio.fail_over();
    traffic.flows().await;
    traffic.end().await;
    // Everything happened there, not on the server that was left.
    let done = "SELECT count(*) FROM gristmill.task";
    assert_eq!(trio.first.psql("postgres", done).unwrap(), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_frozen_primary_everything_moves_on() {
    let trio = Trio::start().await;
    let traffic = Traffic::start(&trio.url()).await;
    trio.primary.freeze().unwrap();
    trio.fail_over();
    traffic.flows().await;
    traffic.end().await;
}

/// Nobody puts or claims here, so that no refused write tells it: it hears of the
/// demotion where it listens, and not when it tries itself again after twenty
/// seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_to_a_demoted_primary_listens_elsewhere() {
    let trio = Trio::start().await;
    let worker = open(&trio.url()).await;
    worker.mark();
    until("listening", async || worker.hears_wake_ups()).await;
    trio.primary.demote().unwrap();
    trio.fail_over();
    let listens = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    let there = async || trio.first.psql("postgres", listens).unwrap() == "1";
    until("listening there", there).await;
}

/// Readers have something to look at while nobody takes writes. And a standby
/// that is named first is passed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_primary_readers_read_from_a_standby() {
    let trio = Trio::start().await;
    let ports = [trio.second.port(), trio.first.port(), trio.primary.port()];
    let url = trio.primary.tcp_url_over(&ports, "postgres");
    let store = open(&url).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a")]).await;
    let standing = "SELECT count(*) FROM gristmill.task";
    for standby in [&trio.first, &trio.second] {
        until("it follows", async || {
            standby.psql("postgres", standing).is_ok_and(|count| count == "1")
        })
        .await;
    }
    // A store on one standby alone answers reads, and refuses writes.
    let alone = open(&trio.second.tcp_url_of("postgres")).await;
    assert_eq!(stats(&alone, "q").await.ready, 1);
    let refused = |error: StoreError| {
        let told =
            matches!(&error, StoreError::Unavailable(why) if why.contains("takes no writes"));
        assert!(told, "{error}");
    };
    refused(alone.put(request("q", vec![task("b")])).await.unwrap_err());
    refused(alone.declare_queue(Declaration::new(name("r"))).await.unwrap_err());

    trio.primary.stop_immediately().unwrap();
    let read = open(&url).await;
    assert_eq!(stats(&read, "q").await.ready, 1);
    refused(read.put(request("q", vec![task("b")])).await.unwrap_err());
    let found = read.diagnose().await.unwrap();
    assert!(found.iter().any(|found| found.code == "read_only"), "{found:?}");
    // When one takes over, the same store writes to it.
    trio.fail_over();
    until("a put", async || read.put(request("q", vec![task("b")])).await.is_ok()).await;
}

/// Cancels whatever waits for standbys.
async fn cancel_the_wait(server: &PrivateServer) {
    let client = application(&server.tcp_url_of("postgres")).await;
    let waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    until("a write waits", async || !client.query(waiting, &[]).await.unwrap().is_empty()).await;
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                   WHERE wait_event = 'SyncRep'";
    client.query(cancel, &[]).await.unwrap();
}

/// An operator who cancels it lets the server commit, alone: a failover then
/// loses what it said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_wait_for_standbys_is_no_success() {
    let primary = made(Server::primary).await;
    let store = open(&primary.tcp_url_of("postgres")).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a")]).await;
    let held = claim(&store, "q", 1).await;
    primary.set("synchronous_standby_names", "FIRST 1 (nobody)").unwrap();

    let unknown = |error: StoreError| {
        assert!(matches!(&error, StoreError::Unknown(why) if why.contains("standbys")), "{error}");
    };
    let (answer, ()) =
        tokio::join!(store.put(request("q", vec![task("b")])), cancel_the_wait(&primary));
    unknown(answer.unwrap_err());
    let settle = settlements(&held, &Outcome::Done);
    let (answer, ()) = tokio::join!(store.settle(settle), cancel_the_wait(&primary));
    unknown(answer.unwrap_err());
    // A transaction of several statements.
    let pause = name("q");
    let (answer, ()) =
        tokio::join!(store.pause_queue(&pause, true, "me"), cancel_the_wait(&primary));
    unknown(answer.unwrap_err());
    // One that nobody cancels is given up in time, and stays with the server.
    let begun = Instant::now();
    let error = store.put(request("q", vec![task("c")])).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    primary.set("synchronous_standby_names", "").unwrap();
    put(&store, "q", vec![task("d")]).await;
}

async fn found(store: &Arc<PostgresStore>, code: &str) -> Option<Diagnosis> {
    let found = store.diagnose().await.unwrap();
    found.into_iter().find(|found| found.code == code)
}

/// Whether acknowledged work would survive a failover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_says_what_a_failover_would_lose() {
    let trio = Trio::start().await;
    let store = open(&trio.url()).await;
    until("both follow", async || {
        trio.primary.psql("postgres", "SELECT count(*) FROM pg_stat_replication").unwrap() == "2"
    })
    .await;
    assert_eq!(found(&store, "failover").await, None);
    trio.primary.set("synchronous_commit", "local").unwrap();
    let local = open(&trio.url()).await;
    assert!(found(&local, "failover").await.is_some_and(|found| found.grave));
    trio.primary.set("synchronous_commit", "on").unwrap();
    trio.primary.set("synchronous_standby_names", "").unwrap();
    let asynchronous = open(&trio.url()).await;
    let told = found(&asynchronous, "failover").await.expect("a word");
    assert!(!told.grave && told.found.contains("2 standbys"), "{told:?}");
    trio.primary.set("synchronous_standby_names", "FIRST 1 (nobody)").unwrap();
    until("nobody is synchronous", async || {
        let sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state <> 'async'";
        trio.primary.psql("postgres", sync).unwrap() == "0"
    })
    .await;
    assert!(found(&asynchronous, "failover").await.is_some_and(|found| found.grave));
}
