//! How soon who waits for a result has it: from the answer of the settlement that says
//! *done* to the return of the wait, by the same handle and by another one, as a process
//! of its own has it.

use std::time::{Duration, Instant};

use gristmill::port::{ClaimRequest, Outcome, Payload, Settlement, Token, WorkerId};
use gristmill::{Mill, QueueName, TaskResult, TaskType};

use super::load::{BenchError, Grain};
use super::{Latency, Measured, Plan, Row, Target};

/// How long one waits before the task is done.
const IDLE: Duration = Duration::from_millis(20);
/// Far longer than any wait may take.
const LONG: Duration = Duration::from_secs(30);

pub(super) async fn all(target: &Target, plan: Plan) -> Result<Measured, BenchError> {
    let (mut same, mut others) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let fresh = target.fresh("returned", round).await?;
        waits(&fresh.mill, &fresh.mill, plan, &mut same).await?;
        if let Some(other) = target.again(&fresh).await? {
            waits(&fresh.mill, &other, plan, &mut others).await?;
            other.close().await?;
        }
        fresh.mill.close().await?;
    }
    let durable = target.is_durable();
    let what = "a settlement's answer to the return of who waits for the result";
    let mut rows = vec![Row::late("result_wait", what, Latency::of(same, None), durable)];
    if !others.is_empty() {
        let what = "the same where another store handle waits, as another process would";
        let others = Latency::of(others, None);
        rows.push(Row::late("result_wait_other", what, others, durable));
    }
    Ok(Measured { rows, costs: Vec::new() })
}

async fn waits(
    working: &Mill,
    waiting: &Mill,
    plan: Plan,
    waits: &mut Vec<Duration>,
) -> Result<(), BenchError> {
    let store = working.store();
    let queue = QueueName::new(Grain::QUEUE).map_err(gristmill::Error::from)?;
    let worker = WorkerId::random()?;
    for number in 0..(plan.tasks / 1_000).clamp(10, 500) {
        let put = waiting.put(Grain::new(number)).wanted().await?;
        let id = put.id();
        let mill = waiting.clone();
        let waiter = tokio::spawn(async move {
            let result = mill.wait::<usize>(id, LONG).await;
            (Instant::now(), result)
        });
        tokio::time::sleep(IDLE).await;
        let token = Token::random()?;
        let claim = ClaimRequest {
            queue: queue.clone(),
            max: 1,
            lease: None,
            worker: worker.clone(),
            source: None,
            token,
        };
        store.claim(claim).await?;
        let settlement = Settlement {
            result: Some(Payload::json(number.to_string())),
            ..Settlement::new(id, token, Outcome::Done)
        };
        store.settle(vec![settlement]).await?;
        let done = Instant::now();
        let (returned, result) = waiter.await.map_err(|e| BenchError::Caller(e.to_string()))?;
        if !matches!(result?, TaskResult::Value(value) if value == number) {
            return Err(BenchError::Caller("a wait returned something else".to_owned()));
        }
        waits.push(returned.saturating_duration_since(done));
    }
    Ok(())
}
