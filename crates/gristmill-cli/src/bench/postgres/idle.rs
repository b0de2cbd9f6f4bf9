//! What a worker costs the server that has nothing to do.

use std::time::Duration;

use gristmill::PostgresUrl;
use gristmill::postgres::bare::Meter;
use gristmill::worker::Worker;

use super::super::load::{BenchError, Grain};
use super::super::{Cost, Measured, Plan, Rounds};
use super::{a_task, fresh};

/// How long it is left alone before it is watched: a server tells what an idle
/// connection did after ten seconds at the latest.
const SETTLES: Duration = Duration::from_secs(12);
/// How long it is watched: longer than any time between two looks of its own.
const IDLE: Duration = Duration::from_secs(60);
/// ... in a benchmark that is only tried.
const BRIEFLY: Duration = Duration::from_secs(1);

/// Commits a second of an idle worker.
pub(in super::super) async fn worker(
    url: &PostgresUrl,
    plan: Plan,
) -> Result<Measured, BenchError> {
    let (settles, idle) = if plan.rounds > 1 { (SETTLES, IDLE) } else { (BRIEFLY, BRIEFLY) };
    let mill = fresh(url).await?;
    let meter = Meter::connect(url.reveal()).await?;
    // Before there is a worker: what a server does for itself, as when its vacuum comes by
    // new tables, is in the same count.
    let alone = commits_a_second(&meter, settles, idle).await?;
    let worker =
        Worker::new(&mill).handle(|_: Grain| async { Ok::<(), String>(()) }).start().await?;
    let worked = commits_a_second(&meter, settles, idle).await?;
    worker.stop().await?;
    mill.close().await?;
    let rounds = Rounds { pairs: vec![(worked, alone)] };
    let what = "transactions committed while a worker has no work, reading ones too / without it";
    let costs = vec![Cost::against("idle".to_owned(), "commits/s", what, rounds)];
    Ok(Measured { rows: Vec::new(), costs })
}

/// How many transactions a second are committed, from when things have settled.
async fn commits_a_second(
    meter: &Meter,
    settles: Duration,
    idle: Duration,
) -> Result<f64, BenchError> {
    tokio::time::sleep(settles).await;
    let before = meter.commits().await?;
    tokio::time::sleep(idle).await;
    let commits = meter.commits().await?.saturating_sub(before);
    let millis = usize::try_from(idle.as_millis()).unwrap_or(usize::MAX);
    Ok(a_task(commits, millis) * 1_000.0)
}
