//! The file spool beside hand-written files, each synced and renamed.

use std::path::{Path, PathBuf};
use std::time::Instant;

use gristmill::Mill;
use gristmill::files::bare::Bare;

use super::load::{BenchError, Grain, drain};
use super::{Plan, Rounds, Row, rate};

/// Tasks in a flush, one claim and one settlement.
pub(super) const BATCH: usize = 1_000;

/// A folder for one round, away afterwards.
pub(super) struct Round(pub(super) PathBuf);

impl Round {
    pub(super) fn new(folder: &Path, name: &str, number: usize) -> Self {
        Round(folder.join(format!("bench-{}-{name}-{number}.spool", std::process::id())))
    }

    pub(super) async fn mill(&self) -> Result<Mill, BenchError> {
        let mill = Mill::open(&format!("files://{}", self.0.display())).await?;
        mill.declare::<Grain>().await?;
        Ok(mill)
    }

    /// A spool with so many tasks.
    pub(super) async fn full(&self, tasks: usize) -> Result<Mill, BenchError> {
        let mill = self.mill().await?;
        mill.put_all((0..tasks).map(Grain::new)).flush(BATCH).run().await?;
        Ok(mill)
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        // A folder that is not there is what is wanted.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A spool is meant for a hundred thousand tasks: a tenth of the others' load.
pub(super) fn tasks(plan: Plan) -> usize {
    (plan.tasks / 10).max(BATCH)
}

/// Bare files are synced one by one, which takes long and tells soon.
fn alone(plan: Plan) -> usize {
    (plan.tasks / 200).clamp(10, 2_000)
}

pub(super) async fn bulk_put(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let spool = Round::new(folder, "ours", number);
        let mill = spool.mill().await?;
        let start = Instant::now();
        mill.put_all((0..tasks(plan)).map(Grain::new)).flush(BATCH).run().await?;
        let ours = rate(tasks(plan), start.elapsed());
        mill.close().await?;

        let spool = Round::new(folder, "bare", number);
        let mut bare = Bare::create(&spool.0)?;
        let start = Instant::now();
        bare.put(alone(plan), &[b'x'; 100])?;
        rounds.pairs.push((ours, rate(alone(plan), start.elapsed())));
    }
    let what = "bulk put, flushes of 1,000 / a file a task written, synced, renamed";
    Ok(Row::against("bulk_put", what, rounds))
}

pub(super) async fn claim_settle(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let spool = Round::new(folder, "ours", number);
        let mill = spool.full(tasks(plan)).await?;
        let start = Instant::now();
        let drained = drain(&mill, BATCH).await?;
        let ours = rate(drained, start.elapsed());
        mill.close().await?;

        let spool = Round::new(folder, "bare", number);
        let mut bare = Bare::create(&spool.0)?;
        bare.put(alone(plan), &[b'x'; 100])?;
        let start = Instant::now();
        let mut taken = 0;
        while bare.take()? {
            taken += 1;
        }
        rounds.pairs.push((ours, rate(taken, start.elapsed())));
    }
    let what = "claim and settle in 1,000s / a file a task renamed, read, deleted, synced";
    Ok(Row::against("claim_settle", what, rounds))
}
