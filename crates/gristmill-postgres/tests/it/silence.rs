//! A server or a network that falls silent without closing anything: no call
//! waits for it for ever, and everything goes on by itself.

use std::time::{Duration, Instant};

use gristmill_core::{
    Action, Declaration, Extension, ListRequest, Operation, Outcome, Selection, SettingsPatch,
    Settlement, Store, StoreError, TaskId, Token, WorkerId,
};
use gristmill_pgserver::{PrivateServer, Proxy, Server};
use gristmill_postgres::{Options, PostgresStore};
use gristmill_text::ControlPlane;

use crate::support::{
    application, asking, claim, database_within, declare, name, put, request, task,
};
use crate::traffic::{Traffic, WORDS, open, until};

/// A little more than the longest limit of [`WORDS`].
const LONGEST: Duration = Duration::from_millis(4_500);

pub(crate) async fn server() -> PrivateServer {
    made(Server::private).await
}

/// Starting servers blocks.
pub(crate) async fn made<T: Send + 'static>(
    make: impl FnOnce() -> gristmill_pgserver::Result<T> + Send + 'static,
) -> T {
    tokio::task::spawn_blocking(make).await.expect("no panic").expect("a server")
}

/// What a call may say when nobody answers; and it says so in time.
async fn refused<T>(what: &str, call: impl Future<Output = Result<T, StoreError>>) -> StoreError {
    let begun = Instant::now();
    let answer = tokio::time::timeout(LONGEST, call).await;
    let answer = answer.unwrap_or_else(|_| panic!("{what}: no answer within {LONGEST:?}"));
    let Err(error) = answer else { panic!("{what}: nobody can have answered") };
    let told = matches!(error, StoreError::Unavailable(_) | StoreError::Unknown(_));
    assert!(told, "{what}: {error:?} after {:?}", begun.elapsed());
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_on_a_frozen_server_answers_in_time() {
    let server = server().await;
    let store = open(&server.tcp_url_of("postgres")).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a"), task("b")]).await;
    let held = claim(&store, "q", 1).await;
    let id = held.tasks[0].id;

    let extend = |lease| vec![Extension::new(held.token, lease)];
    store.extend(extend(Duration::from_secs(60))).await.unwrap();

    server.freeze().unwrap();
    let settle = vec![Settlement::new(id, held.token, Outcome::Done)];
    let worker = WorkerId::new("w1").unwrap();
    let operation = Operation {
        action: Action::Cancel,
        selection: Selection::Ids(vec![TaskId(1)]),
        limit: 1,
        by: "me".to_owned(),
        note: None,
        start: gristmill_core::Start::Now,
    };
    // Over a connection that stood: sent, and not answered.
    let begun = Instant::now();
    let extended = refused("extend", store.extend(extend(Duration::from_secs(2)))).await;
    assert!(begun.elapsed() < Duration::from_millis(1_500), "a third of the lease");
    assert!(matches!(extended, StoreError::Unknown(_)), "{extended:?}");
    tokio::join!(
        refused("put", store.put(request("q", vec![task("c")]))),
        refused("claim", store.claim(asking("q", 1))),
        refused("settle", store.settle(settle)),
    );
    tokio::join!(
        refused("sweep", store.sweep()),
        refused("reclaim", store.reclaim()),
        refused("stats", store.stats()),
        refused("list", store.list(ListRequest::default())),
        refused("get", store.get(id)),
        refused("operate", store.operate(operation)),
        refused("declare", store.declare_queue(Declaration::new(name("other")))),
        refused("campaign", store.campaign("manager", &worker, Duration::from_secs(5))),
        refused("schedules", store.schedules()),
        refused("diagnose", store.diagnose()),
    );
    // Whoever comes new is told as well.
    let url = format!("{}?{WORDS}", server.tcp_url_of("postgres"));
    refused("open", PostgresStore::open(&url, Options::default())).await;
}

/// Callers share commits: those who come while one is under way wait for it, and not for
/// an answer that never comes and then for their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_that_come_behind_one_without_an_answer_are_answered_in_time() {
    let server = server().await;
    let store = open(&server.tcp_url_of("postgres")).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a")]).await;
    server.freeze().unwrap();
    let one = async |nth: usize| {
        refused(&format!("put {nth}"), store.put(request("q", vec![task("b")]))).await
    };
    let others = async {
        // It has an answer only when the first put was sent long ago.
        let nobodys = Extension::new(Token::from_bytes([7; 16]), Duration::from_secs(1));
        refused("extend", store.extend(vec![nobodys])).await;
        let begun = Instant::now();
        futures_util::future::join_all((1..9).map(one)).await;
        // Two seconds are a put's limit; that of the one before and their own are more.
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    };
    tokio::join!(one(0), others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_freeze_everything_goes_on() {
    let server = server().await;
    let traffic = Traffic::start(&server.tcp_url_of("postgres")).await;
    server.freeze().unwrap();
    // Longer than calls may take, and than a lease.
    traffic.is_refused(2).await;
    server.thaw().unwrap();
    traffic.flows().await;
    traffic.end().await;
}

/// A firewall that forgot its states: what stood carries nothing any more, and
/// new connections do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_half_open_connections_everything_goes_on() {
    let server = server().await;
    let proxy = Proxy::to(server.port()).unwrap();
    let traffic = Traffic::start(&server.tcp_url_over(&[proxy.port()], "postgres")).await;
    proxy.stall();
    traffic.flows().await;
    traffic.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_ten_seconds_without_a_server_everything_goes_on() {
    let server = server().await;
    let traffic = Traffic::start(&server.tcp_url_of("postgres")).await;
    server.stop_immediately().unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    server.start().unwrap();
    traffic.flows().await;
    traffic.end().await;
}

/// Listens and never answers: a hung machine, or a firewall that swallows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_first_host_costs_a_moment() {
    let server = server().await;
    let silent = Proxy::silent().unwrap();
    let url = server.tcp_url_over(&[silent.port(), server.port()], "postgres");
    let begun = Instant::now();
    let store = open(&url).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a")]).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Who is about to wait for work listens.
    store.mark();
    until("listening", async || store.hears_wake_ups()).await;
    // Whom it found is asked first from then on.
    let begun = Instant::now();
    let first = silent.taken();
    for _ in 0..20 {
        put(&store, "q", vec![task("a")]).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(silent.taken(), first);
}

/// What was given up here must not come true there much later, nor hold locks.
async fn given_up_is_ended_there(url: &str, database: &gristmill_pgserver::Database) {
    let and = if url.contains('?') { '&' } else { '?' };
    let store = PostgresStore::open(&format!("{url}{and}timeout=1s"), Options::default()).await;
    let store = store.unwrap();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a")]).await;
    let application = application(&database.url()).await;
    application.batch_execute("BEGIN; LOCK TABLE gristmill.lease").await.unwrap();
    let error = tokio::time::timeout(LONGEST, store.claim(asking("q", 1))).await;
    let error = error.expect("in time").expect_err("it waits for the table");
    assert!(matches!(error, StoreError::Unknown(_)), "{error:?}");
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let begun = Instant::now();
    until("it is ended", async || database.psql(waiting).unwrap() == "0").await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    application.batch_execute("COMMIT").await.unwrap();
    assert_eq!(database.psql("SELECT count(*) FROM gristmill.lease").unwrap(), "0");
    assert_eq!(claim(&store, "q", 1).await.tasks.len(), 1);
}

#[tokio::test]
async fn what_was_given_up_is_ended_at_the_server() {
    let database = database_within().await;
    given_up_is_ended_there(&database.url(), &database).await;
}

#[tokio::test]
async fn what_was_given_up_is_ended_behind_a_pooler() {
    let database = database_within().await;
    let url = format!("{}?statement_mode=unnamed", database.pgbouncer_url().unwrap());
    given_up_is_ended_there(&url, &database).await;
}

/// A pooler refuses what is asked of a server at the start. The store does
/// without; and where the pooler does not know prepared statements, the error
/// says what to write in the URL.
#[tokio::test]
async fn a_pooler_that_refuses_what_is_asked_at_the_start_is_put_up_with() {
    let database = database_within().await;
    let url = format!("{}?connections=1", database.pgbouncer_url().unwrap());
    if let Err(error) = PostgresStore::open(&url, Options::default()).await {
        assert!(error.to_string().contains("statement_mode=unnamed"), "{error}");
    }
}

/// All connections taken, and nobody gives one back: that too has an end.
#[tokio::test]
async fn a_call_that_finds_no_free_connection_answers_in_time() {
    let server = server().await;
    let url = format!("{}?{WORDS}&connections=1", server.tcp_url_of("postgres"));
    let store = PostgresStore::open(&url, Options::default()).await.unwrap();
    declare(&store, "q", SettingsPatch::default()).await;
    server.freeze().unwrap();
    let token = Token::random().unwrap();
    let settle = || vec![Settlement::new(TaskId(1), token, Outcome::Done)];
    let begun = Instant::now();
    tokio::join!(
        refused("settle", store.settle(settle())),
        refused("settle", store.settle(settle())),
        refused("settle", store.settle(settle())),
    );
    assert!(begun.elapsed() < LONGEST);
}
