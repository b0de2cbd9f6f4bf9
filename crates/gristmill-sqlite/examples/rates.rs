//! Rates of the SQLite store beside the bare limit of SQLite on this machine,
//! all with `synchronous=FULL`: 100-byte payloads, one in ten with a key.
//!
//! ```text
//! cargo run --release -p gristmill-sqlite --example rates [folder]
//! ```

#![expect(clippy::expect_used, reason = "a measuring program ends at its first error")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, Declaration, NewTask, Outcome, Payload, PutRequest, QueueName, Settlement, Store,
    Token, WorkerId,
};
use gristmill_sqlite::rusqlite::{Connection, params};
use gristmill_sqlite::{Options, SqliteStore};

const BATCH: usize = 1_000;
const BATCHES: usize = 100;
const RUNS: usize = 5;

fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    println!("{:28} {:>10} {:>10} {:>6}", "", "store/s", "bare/s", "ratio");
    let mut bulk = Vec::new();
    let mut cycle = Vec::new();
    for _ in 0..RUNS {
        let bare = bare(&folder);
        let ours = runtime.block_on(ours(&folder));
        bulk.push((ours.0, bare.0));
        cycle.push((ours.1, bare.1));
    }
    show("put in 1,000s", &bulk);
    show("claim and settle 1,000s", &cycle);
    for callers in [1, 8, 64, 256] {
        let mut rates = Vec::new();
        for _ in 0..3 {
            let alone = one_by_one(&folder);
            let together = runtime.block_on(callers_at_once(&folder, callers));
            rates.push((together, alone));
        }
        show(&format!("{callers} callers, a put each"), &rates);
    }
}

/// The run with the median ratio.
fn show(what: &str, runs: &[(f64, f64)]) {
    let mut runs: Vec<(f64, f64)> = runs.to_vec();
    runs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    if let Some((ours, bare)) = runs.get(runs.len() / 2) {
        println!("{what:28} {ours:>10.0} {bare:>10.0} {:>6.2}", ours / bare);
    }
}

fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// A task as a queue needs it, with the two indexes of a bare queue.
fn bare_file(folder: &Path) -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir_in(folder).expect("a folder");
    let conn = Connection::open(folder.path().join("bare.db")).expect("a file");
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000;
         CREATE TABLE task (id INTEGER PRIMARY KEY, queue INTEGER, state INTEGER, key TEXT,
             priority INTEGER, run_at INTEGER, created_at INTEGER, attempts INTEGER,
             token BLOB, until INTEGER, payload BLOB);
         CREATE UNIQUE INDEX task_key ON task (queue, key) WHERE key IS NOT NULL AND state = 0;
         CREATE INDEX task_order ON task (queue, state, run_at, id);",
    )
    .expect("a table");
    (folder, conn)
}

const BARE_INSERT: &str = "INSERT INTO task (queue, state, key, priority, run_at, created_at, \
                           attempts, payload) VALUES (1, 0, ?1, 0, ?2, ?2, 0, ?3)";

/// Microseconds, as a store writes them.
fn at(n: usize) -> i64 {
    1_767_225_600_000_000 + n as i64
}

fn key(n: usize) -> Option<String> {
    n.is_multiple_of(10).then(|| format!("item-{n}"))
}

fn bare(folder: &Path) -> (f64, f64) {
    let (_folder, conn) = bare_file(folder);
    let payload = [7u8; 100];
    let start = Instant::now();
    for batch in 0..BATCHES {
        conn.execute_batch("BEGIN IMMEDIATE").expect("begun");
        {
            let mut insert = conn.prepare_cached(BARE_INSERT).expect("prepared");
            for n in batch * BATCH..(batch + 1) * BATCH {
                insert.execute(params![key(n), at(n), payload]).expect("inserted");
            }
        }
        conn.execute_batch("COMMIT").expect("committed");
    }
    let put = rate(BATCH * BATCHES, start.elapsed());
    let start = Instant::now();
    for batch in 0..BATCHES {
        let token = [batch as u8; 16];
        let mut claim = conn
            .prepare_cached(
                "UPDATE task SET state = 1, attempts = attempts + 1, token = ?1, until = 9 \
                 WHERE id IN (SELECT id FROM task WHERE queue = 1 AND state = 0 \
                 AND run_at <= 9999999999999999 ORDER BY run_at, id LIMIT ?2) \
                 RETURNING id, key, run_at, payload",
            )
            .expect("prepared");
        let ids: Vec<i64> = claim
            .query_map(params![token, BATCH as i64], |row| {
                let _payload: Vec<u8> = row.get(3)?;
                row.get(0)
            })
            .expect("claimed")
            .collect::<Result<_, _>>()
            .expect("claimed");
        assert_eq!(ids.len(), BATCH);
        conn.execute_batch("BEGIN IMMEDIATE").expect("begun");
        {
            let mut done = conn
                .prepare_cached("DELETE FROM task WHERE id = ?1 AND token = ?2")
                .expect("prepared");
            for id in ids {
                done.execute(params![id, token]).expect("deleted");
            }
        }
        conn.execute_batch("COMMIT").expect("committed");
    }
    (put, rate(BATCH * BATCHES, start.elapsed()))
}

async fn open(folder: &Path) -> (tempfile::TempDir, Arc<SqliteStore>, QueueName) {
    let folder = tempfile::tempdir_in(folder).expect("a folder");
    let store =
        SqliteStore::open(folder.path().join("queue.db"), Options::default()).expect("a store");
    let queue = QueueName::new("work").expect("a name");
    store.declare_queue(Declaration::new(queue.clone())).await.expect("declared");
    (folder, Arc::new(store), queue)
}

fn task(n: usize) -> NewTask {
    NewTask { key: key(n), ..NewTask::new(Payload::raw(vec![7u8; 100])) }
}

async fn ours(folder: &Path) -> (f64, f64) {
    let (_folder, store, queue) = open(folder).await;
    let start = Instant::now();
    for batch in 0..BATCHES {
        let tasks: Vec<NewTask> = (batch * BATCH..(batch + 1) * BATCH).map(task).collect();
        let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
        let report = store.put(request).await.expect("put");
        assert_eq!(report.enqueued(), BATCH);
    }
    let put = rate(BATCH * BATCHES, start.elapsed());
    let worker = WorkerId::new("probe").expect("a name");
    let start = Instant::now();
    for _ in 0..BATCHES {
        let token = Token::random().expect("random");
        let request = ClaimRequest {
            queue: queue.clone(),
            max: BATCH,
            lease: None,
            worker: worker.clone(),
            source: None,
            token,
        };
        let claim = store.claim(request).await.expect("claimed");
        assert_eq!(claim.tasks.len(), BATCH);
        let settlements =
            claim.tasks.iter().map(|t| Settlement::new(t.id, token, Outcome::Done)).collect();
        let answers = store.settle(settlements).await.expect("settled");
        assert!(answers.iter().all(gristmill_core::SettleAnswer::is_recorded));
    }
    let cycle = rate(BATCH * BATCHES, start.elapsed());
    store.close().await.expect("closed");
    (put, cycle)
}

const SINGLES: usize = 2_000;

fn one_by_one(folder: &Path) -> f64 {
    let (_folder, conn) = bare_file(folder);
    let start = Instant::now();
    for n in 0..SINGLES {
        conn.prepare_cached(BARE_INSERT)
            .and_then(|mut insert| insert.execute(params![key(n), at(n), [7u8; 100]]))
            .expect("inserted");
    }
    rate(SINGLES, start.elapsed())
}

async fn callers_at_once(folder: &Path, callers: usize) -> f64 {
    let (_folder, store, queue) = open(folder).await;
    let each = (SINGLES * callers.min(30) / callers).max(20);
    let start = Instant::now();
    let running: Vec<_> = (0..callers)
        .map(|caller| {
            let (store, queue) = (store.clone(), queue.clone());
            tokio::spawn(async move {
                for n in 0..each {
                    let tasks = vec![task(caller * each + n)];
                    let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
                    store.put(request).await.expect("put");
                }
            })
        })
        .collect();
    for one in running {
        one.await.expect("ended");
    }
    let put = rate(each * callers, start.elapsed());
    store.close().await.expect("closed");
    put
}
