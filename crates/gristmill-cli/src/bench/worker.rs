//! A worker beside the bare verbs of its store.

use std::path::Path;
use std::time::Instant;

use gristmill::worker::Worker;

use super::load::{BenchError, Grain, drain};
use super::sqlite::{BATCH, Round};
use super::{Plan, Rounds, Row, rate};

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
