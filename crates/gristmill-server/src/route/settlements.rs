//! `POST /v1/settlements`: how attempts ended, each with its answer.

use axum::http::StatusCode;
use gristmill::port::{SettleAnswer, Settlement};
use gristmill::{StoreError, TaskId};

use crate::access::{Caller, Scope};
use crate::call::{self, Call};
use crate::leased::is_foreign;
use crate::message::settle::{SettlementIn, SettlementOut};
use crate::problem::{Answer, Problem};
use crate::service::Service;

pub(crate) async fn settle(call: Call) -> Answer {
    let caller = call.caller.clone();
    let (service, asked) = call.json::<Vec<SettlementIn>>().await?;
    let most = service.store.limits().settlements;
    if asked.len() > most {
        let why = format!("{} settlements and {most} are allowed in a call", asked.len());
        return Err(Problem::new(&crate::problem::INVALID, why));
    }
    let queues = service.known.queues(&service).await?;
    let mut settlements = Vec::with_capacity(asked.len());
    for (at, one) in asked.into_iter().enumerate() {
        let meant = one.meant(&queues, service.store.limits());
        settlements.push(meant.map_err(|problem| problem.within(&format!("[{at}]")))?);
    }
    expect_follow_ups(&caller, &settlements)?;
    let named: Vec<_> = settlements.iter().map(|one| one.id).collect();
    let answers = record(&service, &caller, settlements).await?;
    let each = named.into_iter().zip(answers);
    let answers: Vec<_> = each.map(|(id, answer)| SettlementOut::of(id, answer)).collect();
    call::json(StatusCode::OK, &answers)
}

/// Refuses who may not put what they put along: a worker's token alone is not good for it.
pub(crate) fn expect_follow_ups(caller: &Caller, settlements: &[Settlement]) -> Answer<()> {
    for (at, one) in settlements.iter().enumerate() {
        for (nth, follow_up) in one.follow_ups.iter().enumerate() {
            let theirs = caller.expect_for(Scope::Put, &follow_up.queue);
            let place = format!("[{at}].follow_ups[{nth}].queue");
            theirs.map_err(|problem| problem.at(place))?;
        }
    }
    Ok(())
}

/// Has the store record those that are the caller's. The others are answered as if
/// neither their tasks nor their leases were there.
pub(crate) async fn record(
    service: &Service,
    caller: &Caller,
    settlements: Vec<Settlement>,
) -> Result<Vec<SettleAnswer>, StoreError> {
    let mut ours = Vec::with_capacity(settlements.len());
    let mut whose = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        let foreign = is_foreign(service, caller, settlement.token).await?;
        whose.push((settlement.id, foreign));
        if !foreign {
            ours.push(settlement);
        }
    }
    let answers = if ours.is_empty() { Vec::new() } else { service.store.settle(ours).await? };
    let mut answers = answers.into_iter();
    let mut each = Vec::with_capacity(whose.len());
    for (id, foreign) in whose {
        let answer = if foreign { None } else { answers.next() };
        let answer = answer.unwrap_or(SettleAnswer::Gone);
        // A task of a foreign queue under a lease that is not foreign: nothing was
        // recorded, and it must not be told that there is such a task.
        let stands = matches!(answer, SettleAnswer::LeaseLost | SettleAnswer::AlreadyRecorded);
        let hidden = stands && is_hidden(service, caller, id).await?;
        each.push(if hidden { SettleAnswer::Gone } else { answer });
    }
    Ok(each)
}

/// Whether there is such a task in a queue that is not the caller's.
pub(crate) async fn is_hidden(
    service: &Service,
    caller: &Caller,
    id: TaskId,
) -> Result<bool, StoreError> {
    Ok(caller.is_limited() && service.store.get(id).await?.is_some_and(|task| !caller.sees(&task)))
}
