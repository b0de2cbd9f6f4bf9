//! A worker on the PostgreSQL store beside a hand-written one: bare statements
//! that lease and delete.

use std::time::Instant;

use gristmill::postgres::bare::{Bare, clear};
use gristmill::worker::Worker;

use super::load::{BenchError, Grain};
use super::postgres::{BATCH, SCHEMA, fresh};
use super::{Plan, Rounds, Row, rate};

/// Processors of the larger worker: each claims for itself.
const PROCESSORS: usize = 4;

/// Drains by one worker process with a typed handler that does nothing. Its
/// claims grow to a thousand tasks by themselves, which is what the bare
/// statements take at once.
pub(super) async fn drain_rates(url: &str, plan: Plan) -> Result<Vec<Row>, BenchError> {
    let (mut alone, mut several, mut each) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..plan.rounds {
        let ours = by_worker(url, plan, 1).await?;
        let bare = by_hand(url, plan, 1).await?;
        alone.pairs.push((ours, bare));
        let ours = by_worker(url, plan, PROCESSORS).await?;
        several.pairs.push((ours, bare));
        each.pairs.push((ours, by_hand(url, plan, PROCESSORS).await?));
    }
    clear(url, SCHEMA).await?;
    let what = "worker with a typed no-op handler / bare lease UPDATE, then DELETE in 1,000s";
    let what_several = "4 processors / the same on one connection";
    let what_each = "4 processors / the same on 4 connections";
    Ok(vec![
        Row::against("worker_drain", what, alone),
        Row::against("worker_drain_4", what_several, several),
        Row::against("worker_drain_4_each", what_each, each),
    ])
}

async fn by_worker(url: &str, plan: Plan, processors: usize) -> Result<f64, BenchError> {
    let mill = fresh(url).await?;
    mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
    let worker = Worker::new(&mill)
        .handle(|_: Grain, _| async { Ok::<(), String>(()) })
        .processors(processors)
        .drain(true);
    let start = Instant::now();
    let report = worker.run(std::future::pending()).await?;
    let took = start.elapsed();
    mill.close().await?;
    Ok(rate(usize::try_from(report.done).unwrap_or(usize::MAX), took))
}

async fn by_hand(url: &str, plan: Plan, connections: usize) -> Result<f64, BenchError> {
    let mut first = Bare::create(url).await?;
    first.insert(plan.tasks, BATCH, &[b'x'; 100]).await?;
    let mut all = vec![first];
    while all.len() < connections {
        all.push(Bare::join(url).await?);
    }
    let start = Instant::now();
    let mut running = Vec::new();
    for bare in all {
        running.push(tokio::spawn(async move {
            let mut deleted = 0;
            loop {
                match bare.lease_then_delete(BATCH).await? {
                    0 => return Ok::<usize, gristmill::StoreError>(deleted),
                    n => deleted += n,
                }
            }
        }));
    }
    let mut deleted = 0;
    for drain in running {
        deleted += drain.await.map_err(|e| BenchError::Caller(e.to_string()))??;
    }
    Ok(rate(deleted, start.elapsed()))
}
