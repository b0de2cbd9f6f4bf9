//! A claim costs what it takes, whatever waits: rows visited, and rate, with
//! little in the store and with millions in front.

#![allow(clippy::indexing_slicing, reason = "tests assert")]

use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, Declaration, NewTask, Outcome, Payload, PutRequest, QueueName, SettingsPatch,
    Settlement, Start, Store, Token, WorkerId,
};
use gristmill_sqlite::rusqlite::{Connection, StatementStatus, named_params};
use gristmill_sqlite::{Options, SqliteStore};
use gristmill_text::statement;

/// How much stands in front.
#[derive(Clone, Copy)]
struct Load {
    pending: usize,
    delayed: usize,
    failed: usize,
    other_source: usize,
    blocked: usize,
}

const SMALL: Load = Load { pending: 20_000, delayed: 0, failed: 0, other_source: 0, blocked: 0 };

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn task(n: usize) -> NewTask {
    NewTask { payload: Payload::raw(format!("{n:0100}")), ..NewTask::default() }
}

async fn put(store: &SqliteStore, count: usize, make: impl Fn(usize) -> NewTask) {
    for first in (0..count).step_by(5_000) {
        let tasks = (first..count.min(first + 5_000)).map(&make).collect();
        let request = PutRequest { queue: queue(), tasks, atomic: false };
        let report = store.put(request).await.unwrap();
        assert_eq!(report.enqueued(), report.answers.len());
    }
}

async fn claim(store: &SqliteStore, max: usize, source: Option<&str>) -> Vec<Settlement> {
    let token = Token::random().unwrap();
    let request = ClaimRequest {
        queue: queue(),
        max,
        lease: Some(Duration::from_secs(3600)),
        worker: WorkerId::new("w").unwrap(),
        source: source.map(str::to_owned),
        token,
    };
    let claim = store.claim(request).await.unwrap();
    claim.tasks.iter().map(|task| Settlement::new(task.id, token, Outcome::Done)).collect()
}

/// A store in which all of `load` stands before what will be claimed.
async fn fill(path: &Path, load: Load) -> SqliteStore {
    let store = SqliteStore::open(path, Options::default()).unwrap();
    let settings = SettingsPatch { max_attempts: Some(Some(1)), ..SettingsPatch::default() };
    let declaration = Declaration { settings, ..Declaration::new(queue()) };
    store.declare_queue(declaration).await.unwrap();
    put(&store, load.failed, task).await;
    let mut failed = 0;
    while failed < load.failed {
        let mut settlements = claim(&store, 1_000, None).await;
        for settlement in &mut settlements {
            settlement.outcome = Outcome::Fail("on purpose".to_owned());
        }
        failed += settlements.len();
        store.settle(settlements).await.unwrap();
    }
    // Keys in flight, and a task behind each of them.
    let keyed = |priority: i16| {
        move |n: usize| NewTask { key: Some(format!("key-{n}")), priority, ..task(n) }
    };
    put(&store, load.blocked, keyed(-9)).await;
    let mut held = 0;
    while held < load.blocked {
        held += claim(&store, 1_000, None).await.len();
    }
    put(&store, load.blocked, keyed(-9)).await;
    let tomorrow = Start::After(Duration::from_secs(24 * 3600));
    put(&store, load.delayed, |n| NewTask { start: tomorrow, priority: -5, ..task(n) }).await;
    let other = |n| NewTask { source: Some("other".to_owned()), ..task(n) };
    put(&store, load.other_source, other).await;
    let mine = |n: usize| NewTask {
        // Behind the other source's, so that a claim of this source must not
        // walk over those.
        source: n.is_multiple_of(2).then(|| "mine".to_owned()),
        priority: 1,
        ..task(n)
    };
    put(&store, load.pending, mine).await;
    store
}

/// Claims and settles for a while; tasks a second.
async fn rate(store: &SqliteStore, source: Option<&str>) -> f64 {
    // As many as will be taken, so that the small store stays as full.
    put(store, ROUND, |n| NewTask { source: Some("mine".to_owned()), priority: 1, ..task(n) })
        .await;
    let start = Instant::now();
    let mut done = 0;
    while done < ROUND {
        let settlements = claim(store, 100, source).await;
        done += settlements.len();
        store.settle(settlements).await.unwrap();
    }
    done as f64 / start.elapsed().as_secs_f64()
}

/// Tasks a round: enough that a hiccup of the machine is not the result.
const ROUND: usize = 20_000;

/// Steps of SQLite's machine that the claim's own statements take.
fn steps(path: &Path, source: Option<&str>) -> i32 {
    let connection = Connection::open(path).unwrap();
    let (level, front) = match source {
        None => (
            statement(include_str!("../../src/sql/ready.sql"), "ready_level"),
            statement(include_str!("../../src/sql/claim.sql"), "claim_front"),
        ),
        Some(_) => (
            statement(include_str!("../../src/sql/ready.sql"), "ready_level_source"),
            statement(include_str!("../../src/sql/claim.sql"), "claim_front_source"),
        ),
    };
    let number: u32 =
        connection.query_row("SELECT number FROM gristmill_queue", [], |row| row.get(0)).unwrap();
    let mut total = 0;
    let mut found = 0;
    let mut after = i64::MIN;
    while found < 100 {
        let mut statement = connection.prepare(level).unwrap();
        let next: i64 = match source {
            None => statement
                .query_row(named_params! {":queue": number, ":after": after}, |row| row.get(0)),
            Some(s) => statement.query_row(
                named_params! {":queue": number, ":after": after, ":source": s},
                |row| row.get(0),
            ),
        }
        .expect("a level with due tasks");
        total += statement.get_status(StatementStatus::VmStep);
        let mut statement = connection.prepare(front).unwrap();
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64;
        let left = 100 - found;
        let mut rows = match source {
            None => statement.query(named_params! {
                ":queue": number, ":priority": next, ":now": now, ":limit": left
            }),
            Some(s) => statement.query(named_params! {
                ":queue": number, ":priority": next, ":now": now, ":limit": left, ":source": s
            }),
        }
        .unwrap();
        while rows.next().unwrap().is_some() {
            found += 1;
        }
        drop(rows);
        total += statement.get_status(StatementStatus::VmStep);
        after = next;
    }
    total
}

async fn compare(large: Load, least: f64) {
    let folder = tempfile::tempdir().unwrap();
    let (small_path, large_path) = (folder.path().join("small.db"), folder.path().join("large.db"));
    let small_store = fill(&small_path, SMALL).await;
    let large_store = fill(&large_path, large).await;
    for source in [None, Some("mine")] {
        let (few, many) = (steps(&small_path, source), steps(&large_path, source));
        println!("source {source:?}: {few} steps a claim of 100 with little, {many} with much");
        // A level or two more may be looked at; nothing else.
        assert!(many < few + few / 4 + 100, "{many} against {few}");
        let mut ratios: Vec<f64> = Vec::new();
        for _ in 0..5 {
            let (small, large) =
                (rate(&small_store, source).await, rate(&large_store, source).await);
            println!("  {small:.0}/s with little, {large:.0}/s with much");
            ratios.push(large / small);
        }
        ratios.sort_by(f64::total_cmp);
        println!("  ratio {:.2}", ratios[2]);
        assert!(ratios[2] >= least, "{ratios:?}");
    }
    let stats = large_store.stats().await.unwrap();
    assert_eq!(stats[0].blocked as usize, large.blocked);
    assert_eq!(stats[0].delayed as usize, large.delayed);
    assert_eq!(stats[0].failed as usize, large.failed);
}

#[tokio::test]
async fn claim_cost_does_not_grow_with_what_waits() {
    // Small enough for a debug build: the steps are exact at any size; the
    // rate is asserted in the long form, where it is measured in earnest.
    let large = Load {
        pending: 25_000,
        delayed: 20_000,
        failed: 20_000,
        other_source: 20_000,
        blocked: 5_000,
    };
    compare(large, 0.3).await;
}

#[tokio::test]
#[ignore = "millions of rows: long form, release build"]
async fn long_claim_cost_does_not_grow_with_millions() {
    let million = 1_000_000;
    let large = Load {
        pending: million,
        delayed: million,
        failed: million,
        other_source: million,
        blocked: 100_000,
    };
    compare(large, 0.8).await;
}
