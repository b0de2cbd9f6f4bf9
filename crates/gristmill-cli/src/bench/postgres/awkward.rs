//! Drains that are not the straight road, beside one that is: tasks that fail,
//! tasks with a follow-up each, tasks with a key each; and handlers that wait.

use std::time::{Duration, Instant};

use gristmill::port::Backoff;
use gristmill::worker::Worker;
use gristmill::{Mill, PostgresUrl, TaskType};
use serde::{Deserialize, Serialize};

use super::super::load::{BenchError, Grain, Keyed};
use super::super::{Measured, Plan, Rounds, Row, rate};
use super::{BATCH, again, clear};

/// How long a handler waits that waits.
const WAIT: Duration = Duration::from_millis(5);
/// Processors of a worker whose handlers wait.
const PROCESSORS: usize = 64;

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
    KeyEach,
}

impl Way {
    fn keyed(self) -> Keyed {
        match self {
            Way::KeyEach => Keyed::All,
            _ => Keyed::No,
        }
    }
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
        (Way::KeyEach, "drain_keyed", "every task with a key / none with one"),
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
    let mill = full(url, plan.tasks, way.keyed()).await?;
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
    let start = Instant::now();
    worker.drain(true).run(std::future::pending()).await?;
    let took = start.elapsed();
    let done = mill.inspect().queue(Grain::QUEUE).await?.counters.done;
    mill.close().await?;
    Ok(rate(usize::try_from(done).unwrap_or(usize::MAX), took))
}

/// A worker whose handlers wait, against as many waits side by side as it has
/// processors.
pub(in super::super) async fn waiting(url: &PostgresUrl, plan: Plan) -> Result<Row, BenchError> {
    let tasks = (plan.tasks / 4).max(1);
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = full(url, tasks, Keyed::No).await?;
        let worker = Worker::new(&mill).processors(PROCESSORS).handle(|_: Grain| async {
            tokio::time::sleep(WAIT).await;
            Ok::<(), String>(())
        });
        let start = Instant::now();
        worker.drain(true).run(std::future::pending()).await?;
        let ours = rate(tasks, start.elapsed());
        mill.close().await?;

        let each = (tasks / PROCESSORS).max(1);
        let start = Instant::now();
        let waits = (0..PROCESSORS).map(|_| {
            tokio::spawn(async move {
                for _ in 0..each {
                    tokio::time::sleep(WAIT).await;
                }
            })
        });
        for waits in waits.collect::<Vec<_>>() {
            waits.await.map_err(|e| BenchError::Caller(e.to_string()))?;
        }
        rounds.pairs.push((ours, rate(each * PROCESSORS, start.elapsed())));
    }
    let what = "handlers that wait 5 ms, 64 processors / 64 such waits side by side";
    Ok(Row::against("drain_waiting", what, rounds))
}

async fn full(url: &PostgresUrl, tasks: usize, keyed: Keyed) -> Result<Mill, BenchError> {
    clear(url).await?;
    let mill = again(url).await?;
    // What failed is due again at once: the wait would be measured otherwise.
    let at_once = Backoff { base: Duration::ZERO, ..Backoff::default() };
    mill.declare::<Grain>().backoff(at_once).await?;
    mill.declare::<Flour>().await?;
    mill.put_all((0..tasks).map(|n| Grain::new(n).keyed(keyed))).flush(BATCH).run().await?;
    Ok(mill)
}
