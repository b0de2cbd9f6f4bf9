//! Puts on PostgreSQL: in bulk, and by callers that share commits.

use std::time::Instant;

use gristmill::PostgresUrl;
use gristmill::postgres::bare::{Bare, Meter};

use super::super::load::{BenchError, Grain, put_by};
use super::super::{Cost, Measured, Plan, Rounds, Row, rate};
use super::{BATCH, PAYLOAD, a_task, fresh};

/// Callers that put one task at a time.
const CALLERS: usize = 8;

/// A bulk put, against UNNEST and against COPY: a commit a thousand rows as the
/// put has it, and everything in one.
pub(in super::super) async fn bulk(url: &PostgresUrl, plan: Plan) -> Result<Measured, BenchError> {
    let (mut unnest, mut copy, mut one_copy) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    let mut wal = Rounds::default();
    let meter = Meter::connect(url.reveal()).await?;
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        let written = meter.wal().await?;
        let start = Instant::now();
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
        let ours = rate(plan.tasks, start.elapsed());
        let ours_written = a_task(meter.wal().await?.saturating_sub(written), plan.tasks);
        mill.close().await?;

        let mut bare = Bare::create(url.reveal()).await?;
        let written = meter.wal().await?;
        let start = Instant::now();
        bare.insert(plan.tasks, BATCH, PAYLOAD).await?;
        unnest.pairs.push((ours, rate(plan.tasks, start.elapsed())));
        wal.pairs
            .push((ours_written, a_task(meter.wal().await?.saturating_sub(written), plan.tasks)));

        for (rounds, a_commit) in [(&mut copy, BATCH), (&mut one_copy, plan.tasks)] {
            let mut bare = Bare::create(url.reveal()).await?;
            let start = Instant::now();
            bare.copy(plan.tasks, a_commit, PAYLOAD).await?;
            rounds.pairs.push((ours, rate(plan.tasks, start.elapsed())));
        }
    }
    let what = "bulk put, flushes of 1,000 / bare UNNEST of 1,000s";
    let what_copy = "the same put / COPY of 1,000s, a commit each";
    let what_one = "the same put / one COPY of everything";
    let what_wal = "written ahead by a bulk put / by UNNEST of 1,000s";
    Ok(Measured {
        rows: vec![
            Row::against("bulk_put", what, unnest),
            Row::against("bulk_put_copy", what_copy, copy),
            Row::against("bulk_put_one_copy", what_one, one_copy),
        ],
        costs: vec![Cost::against("wal_bulk_put".to_owned(), "bytes/task", what_wal, wal)],
    })
}

/// Callers that put one task at a time, against one connection that does.
pub(in super::super) async fn callers(url: &PostgresUrl, plan: Plan) -> Result<Row, BenchError> {
    let tasks = (plan.tasks / 20).max(1);
    let alone = (plan.tasks / 100).max(1);
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        let ours = rate(tasks, put_by(CALLERS, &mill, tasks).await?);
        mill.close().await?;

        let mut bare = Bare::create(url.reveal()).await?;
        let start = Instant::now();
        bare.insert(alone, 1, PAYLOAD).await?;
        rounds.pairs.push((ours, rate(alone, start.elapsed())));
    }
    let what = "8 callers put a task each / one connection's single inserts";
    Ok(Row::against("put_8", what, rounds))
}
