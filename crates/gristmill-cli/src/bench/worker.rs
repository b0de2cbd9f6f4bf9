//! A worker with a typed handler that does nothing, beside claims and
//! settlements of the same store.

use std::path::Path;
use std::time::Instant;

use gristmill::Mill;

use super::load::{BenchError, drain, work_off};
use super::{Plan, Rounds, Row, files, rate, sqlite};

/// On SQLite.
pub(super) async fn on_sqlite(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = sqlite::Round::new(folder, "worker", number);
        let ours = by_worker(file.full(plan.tasks).await?).await?;
        let file = sqlite::Round::new(folder, "verbs", number);
        let verbs = by_verbs(file.full(plan.tasks).await?, sqlite::BATCH).await?;
        rounds.pairs.push((ours, verbs));
    }
    Ok(row(rounds))
}

/// On files.
pub(super) async fn on_files(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let spool = files::Round::new(folder, "worker", number);
        let ours = by_worker(spool.full(files::tasks(plan)).await?).await?;
        let spool = files::Round::new(folder, "verbs", number);
        let verbs = by_verbs(spool.full(files::tasks(plan)).await?, files::BATCH).await?;
        rounds.pairs.push((ours, verbs));
    }
    Ok(row(rounds))
}

async fn by_worker(full: Mill) -> Result<f64, BenchError> {
    let (done, took) = work_off(&full, None).await?;
    full.close().await?;
    Ok(rate(done, took))
}

async fn by_verbs(full: Mill, batch: usize) -> Result<f64, BenchError> {
    let start = Instant::now();
    let drained = drain(&full, batch).await?;
    let verbs = rate(drained, start.elapsed());
    full.close().await?;
    Ok(verbs)
}

fn row(rounds: Rounds) -> Row {
    let what = "worker with a typed no-op handler / claim and settle in 1,000s";
    Row::against("worker_drain", what, rounds)
}
