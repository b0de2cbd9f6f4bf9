//! What a worker costs the server that has nothing to do.

use std::time::Duration;

use gristmill::PostgresUrl;
use gristmill::postgres::bare::Meter;
use gristmill::worker::Worker;

use super::super::load::{BenchError, Grain};
use super::super::{Cost, Measured, Plan, Rounds};
use super::{a_task, fresh};

/// How long it is left alone: the longest time between two looks of its own, and
/// more.
const IDLE: Duration = Duration::from_secs(40);
/// ... in a benchmark that is only tried.
const BRIEFLY: Duration = Duration::from_secs(2);

/// Commits a second of an idle worker, what it does to start and to end left out.
pub(in super::super) async fn worker(
    url: &PostgresUrl,
    plan: Plan,
) -> Result<Measured, BenchError> {
    let idle = if plan.rounds > 1 { IDLE } else { BRIEFLY };
    // Longer rounds say more than many.
    let started = commits(url, Duration::ZERO).await?;
    let idled = commits(url, idle).await?;
    let millis = usize::try_from(idle.as_millis()).unwrap_or(usize::MAX);
    let a_second = a_task(idled.saturating_sub(started), millis) * 1_000.0;
    let what = "transactions that a worker without work commits, reading ones too";
    let rounds = Rounds { pairs: vec![(a_second, 0.0)] };
    let costs = vec![Cost::against("idle".to_owned(), "commits/s", what, rounds)];
    Ok(Measured { rows: Vec::new(), costs })
}

/// What a worker commits that is started, left alone for so long, and stopped.
async fn commits(url: &PostgresUrl, idle: Duration) -> Result<u64, BenchError> {
    let mill = fresh(url).await?;
    mill.close().await?;
    let meter = Meter::connect(url.reveal()).await?;
    let before = meter.commits().await?;
    let mill = super::again(url).await?;
    let worker =
        Worker::new(&mill).handle(|_: Grain| async { Ok::<(), String>(()) }).start().await?;
    // What comes once at the beginning is over by then.
    tokio::time::sleep(Duration::from_secs(3) + idle).await;
    worker.stop().await?;
    mill.close().await?;
    Ok(meter.commits().await?.saturating_sub(before))
}
