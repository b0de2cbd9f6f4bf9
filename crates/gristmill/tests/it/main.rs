//! The library as its user sees it, on memory and on SQLite.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests assert"
)]

mod bulk;
mod bulk_beside;
mod causes;
mod checkpoint;
mod clock;
mod clock_jumps;
mod compile_errors;
mod contract;
mod copy;
mod copy_back;
mod examples;
mod faulty;
mod features;
mod handlers;
mod manager;
mod manager_faulty;
mod memory_peak;
mod outage;
mod outage_lines;
mod postgres;
mod postgres_effect;
mod postgres_faulty;
mod postgres_outage;
mod postgres_sqlx;
mod progress;
mod put;
mod put_paths;
mod recovery;
mod results;
mod said;
mod schedule;
mod schedule_faulty;
mod schedule_finder;
mod schedule_outage;
mod schedule_processes;
mod signalled;
mod slots;
mod testing;
mod trace;
mod transaction;
mod worker;
mod worker_batch;
mod worker_change;
mod worker_lease;
mod worker_processes;
mod worker_reasons;
mod worker_speed;
mod worker_stop;
mod worker_trouble;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill::port::ListRequest;
use gristmill::testing::ManualClock;
use gristmill::worker::{Worker, WorkerHandle};
use gristmill::{Mill, TaskType, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

/// A task for these tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) to: String,
}

impl Mail {
    pub(crate) fn to(to: impl ToString) -> Self {
        Mail { to: to.to_string() }
    }
}

impl TaskType for Mail {
    const QUEUE: &'static str = "mails";
}

/// A mill on each store, with its queue declared; the folder must outlive it.
pub(crate) async fn mills() -> Vec<(Mill, tempfile::TempDir)> {
    let mut mills = Vec::new();
    for kind in ["memory", "sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        let url = match kind {
            "memory" => "memory:".to_owned(),
            _ => format!("sqlite://{}", folder.path().join("test.db").display()),
        };
        let mill = Mill::open(&url).await.unwrap();
        mill.declare::<Mail>().await.unwrap();
        mills.push((mill, folder));
    }
    mills
}

/// Returns once it holds; looked at again and again, for no signal tells.
pub(crate) async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    within(Duration::from_secs(60), what, holds).await;
}

/// As [`until`], and it must hold within this time.
pub(crate) async fn within(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// As [`until`], where no timer goes off any more: handlers block every thread of the
/// runtime.
pub(crate) async fn until_though_blocked(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// When the first of all leases ends, as the store has it.
pub(crate) async fn first_lease_end(mill: &Mill) -> Option<Timestamp> {
    let request = ListRequest { limit: 1_000, ..ListRequest::default() };
    let tasks = mill.inspect().list(request).await.unwrap().tasks;
    tasks.iter().filter_map(|task| Some(task.lease.as_ref()?.until)).min()
}

/// As [`until`], on a clock that is moved on by a step before each look.
pub(crate) async fn ticking(
    clock: &ManualClock,
    step: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> bool,
) {
    until(what, async || {
        clock.advance(step);
        holds().await
    })
    .await;
}

/// A worker whose handlers wait for a permit each, so that there is something to see.
pub(crate) async fn gated(mill: &Mill) -> (WorkerHandle, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let worker = Worker::new(mill).handle(move |_: Mail| {
        let permits = permits.clone();
        async move {
            permits.acquire().await.map_err(|e| e.to_string())?.forget();
            Ok::<(), String>(())
        }
    });
    (worker.start().await.unwrap(), gate)
}
