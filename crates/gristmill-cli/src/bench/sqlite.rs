//! The SQLite store beside bare statements on the same build of SQLite.

use std::path::{Path, PathBuf};
use std::time::Instant;

use gristmill::Mill;
use gristmill::port::Token;
use gristmill::sqlite::bare::Bare;

use super::load::{BenchError, Grain, drain, put_by};
use super::{Plan, Rounds, Row, rate};

/// Tasks in one statement's transaction, one claim and one settlement.
pub(super) const BATCH: usize = 1_000;

/// A file for one round, away afterwards.
pub(super) struct Round(pub(super) PathBuf);

impl Round {
    pub(super) fn new(folder: &Path, name: &str, number: usize) -> Self {
        Round(folder.join(format!("bench-{}-{name}-{number}.db", std::process::id())))
    }

    pub(super) async fn mill(&self) -> Result<Mill, BenchError> {
        let mill = Mill::open(&format!("sqlite://{}", self.0.display())).await?;
        mill.declare::<Grain>().await?;
        Ok(mill)
    }

    /// A store with so many tasks.
    pub(super) async fn full(&self, tasks: usize) -> Result<Mill, BenchError> {
        let mill = self.mill().await?;
        mill.put_all((0..tasks).map(Grain::new)).run().await?;
        Ok(mill)
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-room"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            // A file that is not there is what is wanted.
            let _ = std::fs::remove_file(path);
        }
    }
}

pub(super) async fn bulk_put(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "ours", number);
        let mill = file.mill().await?;
        let start = Instant::now();
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
        let ours = rate(plan.tasks, start.elapsed());
        mill.close().await?;

        let file = Round::new(folder, "bare", number);
        let mut bare = Bare::create(&file.0)?;
        let start = Instant::now();
        bare.insert(plan.tasks, BATCH, &[b'x'; 100])?;
        rounds.pairs.push((ours, rate(plan.tasks, start.elapsed())));
    }
    Ok(Row::against("bulk_put", "bulk put, flushes of 1,000 / bare insert in 1,000s", rounds))
}

pub(super) async fn claim_settle(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "ours", number);
        let mill = file.full(plan.tasks).await?;
        let start = Instant::now();
        let drained = drain(&mill, BATCH).await?;
        let ours = rate(drained, start.elapsed());
        mill.close().await?;

        let file = Round::new(folder, "bare", number);
        let mut bare = Bare::create(&file.0)?;
        bare.insert(plan.tasks, BATCH, &[b'x'; 100])?;
        let start = Instant::now();
        let mut deleted = 0;
        loop {
            let token = Token::random()?.to_bytes();
            match bare.lease_then_delete(BATCH, &token)? {
                0 => break,
                n => deleted += n,
            }
        }
        rounds.pairs.push((ours, rate(deleted, start.elapsed())));
    }
    let what = "claim and settle in 1,000s / bare, one lease row a batch of 1,000";
    Ok(Row::against("claim_settle", what, rounds))
}

/// Many callers that put one task at a time, against a commit for each round of
/// them: as many rows as there are callers.
pub(super) async fn callers(
    folder: &Path,
    plan: Plan,
    callers: usize,
    name: &'static str,
) -> Result<Row, BenchError> {
    let tasks = plan.tasks / 5;
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "ours", number);
        let mill = file.mill().await?;
        let ours = rate(tasks, put_by(callers, &mill, tasks).await?);
        mill.close().await?;

        let file = Round::new(folder, "bare", number);
        let mut bare = Bare::create(&file.0)?;
        let start = Instant::now();
        bare.insert(tasks, callers, &[b'x'; 100])?;
        rounds.pairs.push((ours, rate(tasks, start.elapsed())));
    }
    let what = "so many callers put a task each / bare inserts, as many rows a commit";
    Ok(Row::against(name, what, rounds))
}
