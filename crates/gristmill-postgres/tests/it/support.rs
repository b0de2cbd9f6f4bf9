//! A database with the schema in it, stores on it, and the port's verbs in
//! short forms.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{
    Binding, Claim, ClaimRequest, Declaration, Limits, ManualClock, NewTask, Outcome, Payload,
    PutReport, PutRequest, QueueName, QueueStats, SettingsPatch, SettleAnswer, Settlement, Store,
    Token, WorkerId,
};
use gristmill_pgserver::{Database, Server};
use gristmill_postgres::tokio_postgres::{self, Client, Error, NoTls};
use gristmill_postgres::{Options, PostgresStore};

/// A database of one's own whose schema is made. Blocks.
pub(crate) fn database() -> Database {
    let server = Server::shared().expect("PostgreSQL runs");
    let made = server.database("store", |url| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let opened = runtime.expect("a runtime").block_on(async {
            let store = PostgresStore::open(url, Options::default()).await?;
            store.close().await
        });
        opened.map_err(|e| gristmill_pgserver::Error::new(e.to_string()))
    });
    made.expect("a database")
}

/// As [`database`], from within a runtime.
pub(crate) async fn database_within() -> Database {
    tokio::task::spawn_blocking(database).await.expect("a database")
}

/// A store on a clock that the test owns.
pub(crate) async fn on_clock(url: &str, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
    let options = Options { clock: Some(clock), limits, ..Options::default() };
    Arc::new(PostgresStore::open(url, options).await.expect("a store"))
}

/// A store on the server's clock.
pub(crate) async fn store(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(url, Options::default()).await.expect("a store"))
}

/// The application's own connection.
pub(crate) async fn application(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a name")
}

pub(crate) fn task(payload: &str) -> NewTask {
    NewTask::new(Payload::raw(payload.as_bytes().to_vec()))
}

pub(crate) fn keyed(key: &str) -> NewTask {
    NewTask { key: Some(key.to_owned()), ..task(key) }
}

pub(crate) fn request(queue: &str, tasks: Vec<NewTask>) -> PutRequest {
    PutRequest { queue: name(queue), tasks, atomic: false }
}

pub(crate) async fn declare(store: &PostgresStore, queue: &str, settings: SettingsPatch) {
    let declaration = Declaration { settings, ..Declaration::new(name(queue)) };
    store.declare_queue(declaration).await.expect("a declaration");
}

/// Settings that bind a queue to a column of the application.
pub(crate) fn bound(table: &str, column: &str) -> SettingsPatch {
    let bind = Binding { table: table.to_owned(), column: column.to_owned() };
    SettingsPatch { bind: Some(Some(bind)), ..SettingsPatch::default() }
}

pub(crate) async fn put(store: &PostgresStore, queue: &str, tasks: Vec<NewTask>) -> PutReport {
    store.put(request(queue, tasks)).await.expect("a put")
}

pub(crate) fn asking(queue: &str, max: usize) -> ClaimRequest {
    ClaimRequest {
        queue: name(queue),
        max,
        lease: None,
        worker: WorkerId::new("w1").expect("a name"),
        source: None,
        token: Token::random().expect("randomness"),
    }
}

pub(crate) async fn claim(store: &PostgresStore, queue: &str, max: usize) -> Claim {
    store.claim(asking(queue, max)).await.expect("a claim")
}

pub(crate) fn settlements(claim: &Claim, outcome: &Outcome) -> Vec<Settlement> {
    let tasks = claim.tasks.iter();
    tasks.map(|task| Settlement::new(task.id, claim.token, outcome.clone())).collect()
}

pub(crate) async fn done(store: &PostgresStore, claim: &Claim) -> Vec<SettleAnswer> {
    store.settle(settlements(claim, &Outcome::Done)).await.expect("settlements")
}

pub(crate) async fn stats(store: &PostgresStore, queue: &str) -> QueueStats {
    let all = store.stats().await.expect("stats");
    all.into_iter().find(|stats| stats.queue.as_str() == queue).expect("declared")
}

/// Waits until a backend waits for another one's end, or has done this.
async fn settled(observer: &Client, pid: i32, doing: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let row = observer
            .query_opt(
                "SELECT query = $2 AND (cardinality(pg_blocking_pids($1)) > 0 OR state <> 'active')
                   FROM pg_stat_activity WHERE pid = $1",
                &[&pid, &doing],
            )
            .await
            .unwrap();
        // Without a row the session has ended.
        if row.is_none_or(|row| row.get(0)) {
            return;
        }
        assert!(Instant::now() < deadline, "backend {pid} neither waits nor ends");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Begins `first` in a transaction, then runs `second` by itself, then commits.
pub(crate) async fn beside(url: &str, first: &str, second: &'static str) -> Result<(), Error> {
    let moving = application(url).await;
    let (ending, observer) = (application(url).await, application(url).await);
    moving.batch_execute(&format!("BEGIN; {first}")).await.unwrap();
    let at = pid(&ending).await;
    let ended = tokio::spawn(async move { ending.batch_execute(second).await });
    settled(&observer, at, second).await;
    moving.batch_execute("COMMIT").await.unwrap();
    ended.await.unwrap()
}
