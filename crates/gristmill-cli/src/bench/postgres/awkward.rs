//! Drains that are not the straight road, beside one that is: tasks that fail, and
//! tasks with a follow-up each.

use std::time::Duration;

use gristmill::port::Backoff;
use gristmill::worker::Worker;
use gristmill::{Mill, PostgresUrl, TaskType};
use serde::{Deserialize, Serialize};

use super::super::load::{BenchError, Grain};
use super::super::{Measured, Plan, Rounds, Row, rate};
use super::{BATCH, again, clear};

/// What follows from a grain.
#[derive(Debug, Serialize, Deserialize)]
struct Flour(usize);

impl TaskType for Flour {
    const QUEUE: &'static str = "flour";
}

/// What a handler does of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Straight,
    OneInAHundredFails,
    EachFailsOnce,
    FollowUpEach,
}

/// Each way beside the straight one, in turns.
pub(in super::super) async fn drains(
    url: &PostgresUrl,
    plan: Plan,
) -> Result<Measured, BenchError> {
    let ways = [
        (Way::OneInAHundredFails, "drain_errors", "1 % of the tasks fail once / none does"),
        (Way::EachFailsOnce, "drain_failing", "every task fails once / none does"),
        (Way::FollowUpEach, "drain_follow_ups", "a follow-up each / none"),
    ];
    let mut measured = Measured::default();
    for (way, name, what) in ways {
        let mut rounds = Rounds::default();
        for _ in 0..plan.rounds {
            let ours = drain(url, plan, way).await?;
            rounds.pairs.push((ours, drain(url, plan, Way::Straight).await?));
        }
        measured.rows.push(Row::against(name, what, rounds));
    }
    Ok(measured)
}

/// Tasks a second until all of them are done, those that failed included.
async fn drain(url: &PostgresUrl, plan: Plan, way: Way) -> Result<f64, BenchError> {
    let mill = full(url, plan).await?;
    let worker =
        Worker::new(&mill).handle(move |grain: Grain, context: gristmill::Context| async move {
            let first = context.attempt == 1;
            match way {
                Way::OneInAHundredFails if first && grain.number().is_multiple_of(100) => {
                    return Err("it failed".to_owned());
                }
                Way::EachFailsOnce if first => return Err("it failed".to_owned()),
                Way::FollowUpEach => {
                    let followed = context.follow_up(Flour(grain.number()));
                    followed.map_err(|error| error.to_string())?;
                }
                _ => {}
            }
            Ok(())
        });
    let start = std::time::Instant::now();
    worker.drain(true).run(std::future::pending()).await?;
    let took = start.elapsed();
    let done = mill.inspect().queue(Grain::QUEUE).await?.counters.done;
    mill.close().await?;
    Ok(rate(usize::try_from(done).unwrap_or(usize::MAX), took))
}

async fn full(url: &PostgresUrl, plan: Plan) -> Result<Mill, BenchError> {
    clear(url).await?;
    let mill = again(url).await?;
    // What failed is due again at once: the wait would be measured otherwise.
    let at_once = Backoff { base: Duration::ZERO, ..Backoff::default() };
    mill.declare::<Grain>().backoff(at_once).await?;
    mill.declare::<Flour>().await?;
    mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
    Ok(mill)
}
