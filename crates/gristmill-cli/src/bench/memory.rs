//! The memory store: put, claim and done on one thread.

use std::time::Instant;

use gristmill::port::{NewTask, Payload, PutRequest, WorkerId};
use gristmill::{Mill, QueueName, TaskType};

use super::load::{BenchError, Grain, cycle};
use super::{Plan, Row, median, rate};

/// Tasks a put, claim and settlement.
const BATCH: usize = 100;

pub(super) async fn all(plan: Plan) -> Result<Row, BenchError> {
    let mut rates = Vec::new();
    for _ in 0..plan.rounds {
        let mill = Mill::open("memory:").await?;
        mill.declare::<Grain>().await?;
        let store = mill.store();
        let queue = QueueName::new(Grain::QUEUE).map_err(gristmill::Error::from)?;
        let worker = WorkerId::random()?;
        let start = Instant::now();
        let mut done = 0;
        while done < plan.tasks {
            let tasks = (0..BATCH)
                .map(|n| NewTask {
                    payload: Payload::raw(vec![b'x'; 100]),
                    key: (n % 10 == 0).then(|| format!("key-{n}")),
                    ..NewTask::default()
                })
                .collect();
            store.put(PutRequest { queue: queue.clone(), tasks, atomic: false }).await?;
            done += cycle(&*store, &queue, &worker, BATCH).await?;
        }
        rates.push(rate(done, start.elapsed()));
    }
    Ok(Row {
        name: "memory_cycle",
        what: "memory: put, claim and done in 100s, one thread",
        rate: median(rates),
        bare: None,
        ratio: None,
        durable: false,
        latency: None,
    })
}
