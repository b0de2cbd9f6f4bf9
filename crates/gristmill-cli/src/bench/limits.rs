//! What limits and turns cost: claims and settlements of a queue that has some, beside
//! those of a plain one with the same tasks. No limit is ever reached, so that what is
//! measured is the looking.

use std::time::{Duration, Instant};

use gristmill::port::{Fair, NewTask, Payload, Per, PutRequest, Rate, SettingsPatch};
use gristmill::{QueueName, TaskType};

use super::load::{BenchError, Grain, drain};
use super::{Measured, Plan, Rounds, Row, Target, rate};

/// Tasks in a put, a claim and a settlement.
const BATCH: usize = 1_000;

/// A limited queue.
struct Limit {
    name: &'static str,
    what: &'static str,
    /// Between how many groups its tasks are spread, in turns.
    groups: usize,
    say: fn(&mut SettingsPatch),
}

fn concurrency(settings: &mut SettingsPatch) {
    settings.concurrency = Some(Some(2_000));
}

fn fast(settings: &mut SettingsPatch) {
    settings.rate = Some(Some(Rate::new(1_000_000, Duration::from_secs(1))));
    settings.burst = Some(Some(1_000_000));
}

const LIMITS: [Limit; 5] = [
    Limit {
        name: "limited_concurrency",
        what: "claim and settle in 1,000s with a concurrency / without",
        groups: 100,
        say: concurrency,
    },
    Limit { name: "limited_rate", what: "the same with a rate / without", groups: 100, say: fast },
    Limit {
        name: "limited_concurrency_group",
        what: "the same with a concurrency of each of 100 groups / without",
        groups: 100,
        say: |settings| {
            concurrency(settings);
            settings.concurrency_per = Some(Per::Group);
        },
    },
    Limit {
        name: "limited_rate_group",
        what: "the same with a rate of each of 100 groups / without",
        groups: 100,
        say: |settings| {
            fast(settings);
            settings.rate_per = Some(Per::Group);
        },
    },
    Limit {
        name: "fair",
        what: "the same in turns of 10,000 groups / without turns",
        groups: 10_000,
        say: |settings| settings.fair = Some(Fair::Group),
    },
];

pub(super) async fn all(target: &Target, plan: Plan) -> Result<Measured, BenchError> {
    let mut measured = Measured::default();
    for limit in &LIMITS {
        let mut rounds = Rounds::default();
        for round in 0..plan.rounds {
            let ours = drained(target, plan, round, limit, limit.say).await?;
            let plain = drained(target, plan, round, limit, |_| {}).await?;
            rounds.pairs.push((ours, plain));
        }
        let row = Row::against(limit.name, limit.what, rounds);
        measured.rows.push(Row { durable: target.is_durable(), ..row });
    }
    Ok(measured)
}

/// Tasks a second that are claimed and settled.
async fn drained(
    target: &Target,
    plan: Plan,
    round: usize,
    limit: &Limit,
    say: fn(&mut SettingsPatch),
) -> Result<f64, BenchError> {
    let fresh = target.fresh(limit.name, round).await?;
    let mill = &fresh.mill;
    mill.declare::<Grain>().with(say).await?;
    let queue = QueueName::new(Grain::QUEUE).map_err(gristmill::Error::from)?;
    let tasks = target.some_tasks(plan);
    for from in (0..tasks).step_by(BATCH) {
        let tasks = (from..tasks.min(from + BATCH)).map(|number| NewTask {
            payload: Payload::raw(vec![b'x'; 100]),
            group: Some(format!("group-{}", number % limit.groups)),
            ..NewTask::default()
        });
        let request = PutRequest { queue: queue.clone(), tasks: tasks.collect(), atomic: false };
        mill.store().put(request).await?;
    }
    let start = Instant::now();
    let drained = drain(mill, BATCH).await?;
    let rate = rate(drained, start.elapsed());
    mill.close().await?;
    Ok(rate)
}
