//! The PostgreSQL store beside bare statements on the same server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gristmill::Mill;
use gristmill::postgres::bare::{Bare, clear};

use super::load::{BenchError, Grain, drain};
use super::{Plan, Rounds, Row, rate};

/// Tasks in one statement, one claim and one settlement.
pub(super) const BATCH: usize = 1_000;
/// The benchmark's own schema: the store that is there is not touched.
pub(super) const SCHEMA: &str = "gristmill_bench";
/// Callers that put one task at a time.
const CALLERS: usize = 8;

/// A store with nothing in it.
pub(super) async fn fresh(url: &str) -> Result<Mill, BenchError> {
    clear(url, SCHEMA).await?;
    let and = if url.contains('?') { '&' } else { '?' };
    let mill = Mill::open(&format!("{url}{and}schema={SCHEMA}")).await?;
    mill.declare::<Grain>().await?;
    Ok(mill)
}

pub(super) async fn bulk_put(url: &str, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        let start = Instant::now();
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
        let ours = rate(plan.tasks, start.elapsed());
        mill.close().await?;

        let mut bare = Bare::create(url).await?;
        let start = Instant::now();
        bare.insert(plan.tasks, BATCH, &[b'x'; 100]).await?;
        rounds.pairs.push((ours, rate(plan.tasks, start.elapsed())));
    }
    clear(url, SCHEMA).await?;
    Ok(Row::against("bulk_put", "bulk put, flushes of 1,000 / bare UNNEST of 1,000s", rounds))
}

pub(super) async fn claim_settle(url: &str, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
        let start = Instant::now();
        let drained = drain(&mill, BATCH).await?;
        let ours = rate(drained, start.elapsed());
        mill.close().await?;

        let mut bare = Bare::create(url).await?;
        bare.insert(plan.tasks, BATCH, &[b'x'; 100]).await?;
        let start = Instant::now();
        let mut deleted = 0;
        loop {
            match bare.lease_then_delete(BATCH).await? {
                0 => break,
                n => deleted += n,
            }
        }
        rounds.pairs.push((ours, rate(deleted, start.elapsed())));
    }
    clear(url, SCHEMA).await?;
    let what = "claim and settle in 1,000s / bare lease UPDATE, then DELETE";
    Ok(Row::against("claim_settle", what, rounds))
}

/// Callers that put one task at a time, against one connection that does.
pub(super) async fn callers(url: &str, plan: Plan) -> Result<Row, BenchError> {
    let tasks = (plan.tasks / 20).max(1);
    let alone = (plan.tasks / 100).max(1);
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let mut running = Vec::new();
        for _ in 0..CALLERS {
            let (mill, next) = (mill.clone(), next.clone());
            running.push(tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= tasks {
                        return Ok::<(), gristmill::Error>(());
                    }
                    mill.put(Grain::new(number)).await?;
                }
            }));
        }
        for caller in running {
            caller.await.map_err(|e| BenchError::Caller(e.to_string()))??;
        }
        let ours = rate(tasks, start.elapsed());
        mill.close().await?;

        let mut bare = Bare::create(url).await?;
        let start = Instant::now();
        bare.insert(alone, 1, &[b'x'; 100]).await?;
        rounds.pairs.push((ours, rate(alone, start.elapsed())));
    }
    clear(url, SCHEMA).await?;
    let what = "8 callers put a task each / one connection's single inserts";
    Ok(Row::against("put_8", what, rounds))
}
