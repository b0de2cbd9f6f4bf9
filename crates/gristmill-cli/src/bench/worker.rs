//! A worker beside the bare verbs of its store, and how soon it begins.

use std::path::Path;
use std::time::{Duration, Instant};

use gristmill::Mill;
use gristmill::sqlite::bare::Bare;
use gristmill::worker::Worker;
use tokio::sync::mpsc;

use super::load::{BenchError, Grain, drain};
use super::sqlite::{BATCH, Round};
use super::{Latency, Plan, Rounds, Row, rate};

/// How long a worker is left idle before the next put.
const IDLE: Duration = Duration::from_millis(3);

/// Drains with a typed handler that does nothing, against claims and
/// settlements of the same store.
pub(super) async fn drain_rate(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "worker", number);
        let mill = file.mill().await?;
        mill.put_all((0..plan.tasks).map(Grain::new)).run().await?;
        let worker = Worker::new(&mill).handle(|_: Grain, _| async { Ok::<(), String>(()) });
        let start = Instant::now();
        let report = worker.drain(true).run(std::future::pending()).await?;
        let done = usize::try_from(report.done).unwrap_or(usize::MAX);
        let ours = rate(done, start.elapsed());
        mill.close().await?;

        let file = Round::new(folder, "verbs", number);
        let mill = file.mill().await?;
        mill.put_all((0..plan.tasks).map(Grain::new)).run().await?;
        let start = Instant::now();
        let drained = drain(&mill, BATCH).await?;
        rounds.pairs.push((ours, rate(drained, start.elapsed())));
        mill.close().await?;
    }
    let what = "worker with a typed no-op handler / claim and settle in 1,000s";
    Ok(Row::against("worker_drain", what, rounds))
}

/// From a put's call to its handler's start on an idle worker, in memory.
pub(super) async fn latency_memory(plan: Plan) -> Result<Row, BenchError> {
    let mut waits = Vec::new();
    for _ in 0..plan.rounds {
        let mill = Mill::open("memory:").await?;
        mill.declare::<Grain>().await?;
        waits.extend(put_to_start(&mill, puts(plan)).await?);
    }
    let latency = Latency::of(waits, None);
    Ok(Row::late("start_memory", "memory: put to the handler's start, idle worker", latency, false))
}

/// The same on SQLite, against one commit of a bare insert.
pub(super) async fn latency_sqlite(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let (mut waits, mut commits) = (Vec::new(), Vec::new());
    for number in 0..plan.rounds {
        let file = Round::new(folder, "start", number);
        let mill = file.mill().await?;
        waits.extend(put_to_start(&mill, puts(plan)).await?);
        mill.close().await?;

        let file = Round::new(folder, "commit", number);
        let mut bare = Bare::create(&file.0)?;
        for _ in 0..puts(plan) {
            tokio::time::sleep(IDLE).await;
            let start = Instant::now();
            bare.insert(1, 1, &[b'x'; 100])?;
            commits.push(start.elapsed());
        }
    }
    let what = "SQLite: put to the handler's start, idle worker / one bare commit";
    Ok(Row::late("start_sqlite", what, Latency::of(waits, Some(commits)), true))
}

fn puts(plan: Plan) -> usize {
    (plan.tasks / 1_000).clamp(10, 1_000)
}

async fn put_to_start(mill: &Mill, puts: usize) -> Result<Vec<Duration>, BenchError> {
    let (tell, mut started) = mpsc::unbounded_channel();
    let worker = Worker::new(mill)
        .handle(move |_: Grain, _| {
            // Nobody listens any more: the measurement is over.
            let _ = tell.send(Instant::now());
            async { Ok::<(), String>(()) }
        })
        .start()
        .await?;
    let mut waits = Vec::with_capacity(puts);
    for number in 0..puts {
        tokio::time::sleep(IDLE).await;
        let put = Instant::now();
        mill.put(Grain::new(number)).await?;
        let ended = || BenchError::Caller("the worker ended".to_owned());
        waits.push(started.recv().await.ok_or_else(ended)? - put);
    }
    worker.stop().await?;
    Ok(waits)
}
