//! One call on the port with everything said, and its answer in a form that
//! can be compared between stores.

use std::time::Duration;

use gristmill_core::{
    Assignment, Claim, ClaimRequest, ContractAnswer, ContractChange, Declared, ExtendAnswer,
    Extension, Fire, FireAnswer, KeyStanding, Leadership, Minute, Operation, OperationAnswer,
    Published, PutReport, PutRequest, QueueName, Schedule, ScheduleDeclaration, ScheduleName,
    Selection, SettingsPatch, SettleAnswer, Settlement, Store, StoreError, SweepReport, TaskId,
    WorkerId, WorkerReport,
};
use gristmill_text::ControlPlane;

/// A call.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Put(PutRequest),
    Claim(ClaimRequest),
    Settle(Vec<Settlement>),
    Extend(Vec<Extension>),
    Reclaim,
    Sweep,
    Operate(Operation),
    Pause(QueueName, bool),
    Override(QueueName, Box<SettingsPatch>),
    Reset(QueueName),
    Find(QueueName, Vec<String>),
    Minutes(QueueName, Duration),
    Contract(ContractChange),
    Schedule(Box<ScheduleDeclaration>),
    Unschedule(ScheduleName),
    PauseSchedule(ScheduleName, bool),
    Fire(Fire),
    Campaign(WorkerId, Duration),
    Resign(WorkerId),
    Publish(Assignment),
    Report(Box<WorkerReport>),
    Forget(WorkerId),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Put(PutReport),
    Claim(Claim),
    Settle(Vec<SettleAnswer>),
    Extend(Vec<ExtendAnswer>),
    Count(u64),
    Sweep(SweepReport),
    Operate(Vec<(TaskId, OperationAnswer)>),
    Nothing,
    Declared(Box<Declared>),
    Find(Vec<KeyStanding>),
    Minutes(Vec<Minute>),
    Contract(ContractAnswer),
    Schedule(Box<Schedule>),
    Was(bool),
    Fire(FireAnswer),
    Campaign(Leadership),
    Publish(Published),
    /// An error's kind. Its words are the store's own.
    Error(&'static str),
}

fn kind(error: &StoreError) -> Answer {
    Answer::Error(match error {
        StoreError::Invalid(_) => "invalid",
        StoreError::UnknownQueue { .. } => "unknown queue",
        StoreError::NotSupported(_) => "not supported",
        _ => "failure",
    })
}

/// The role of all histories: the one whose holder may publish.
const ROLE: &str = gristmill_core::assignment::MANAGER;

/// Makes the call.
pub(super) async fn make(store: &dyn Store, call: Call) -> Answer {
    attempt(store, call).await.unwrap_or_else(|error| kind(&error))
}

async fn attempt(store: &dyn Store, call: Call) -> Result<Answer, StoreError> {
    Ok(match call {
        Call::Put(request) => Answer::Put(store.put(request).await?),
        Call::Claim(request) => {
            let claim = store.claim(request).await?;
            for task in &claim.tasks {
                let shown = store.get(task.id).await?.and_then(|task| task.lease);
                if shown.and_then(|lease| lease.slot) != task.slot {
                    return Ok(Answer::Error("a run got another slot than its task shows"));
                }
            }
            Answer::Claim(plain(claim))
        }
        Call::Settle(settlements) => Answer::Settle(store.settle(settlements).await?),
        Call::Extend(extensions) => {
            let answers = store.extend(extensions).await?;
            Answer::Extend(answers.into_iter().map(in_order).collect())
        }
        Call::Reclaim => Answer::Count(store.reclaim().await?),
        Call::Sweep => {
            // When a task that fell due is counted as ready, whether
            // un-blocking was left to the sweep, and who else is on the
            // server, is the store's own affair.
            let mut report = store.sweep().await?;
            report.failed.sort();
            Answer::Sweep(SweepReport {
                promoted: 0,
                unblocked: 0,
                oldest_transaction: None,
                ..report
            })
        }
        Call::Operate(operation) => Answer::Operate(operate(store, operation).await?),
        Call::Pause(queue, paused) => {
            store.pause_queue(&queue, paused, "operator").await?;
            Answer::Nothing
        }
        Call::Override(queue, patch) => {
            Answer::Declared(Box::new(store.override_queue(&queue, *patch, "operator").await?))
        }
        Call::Reset(queue) => {
            Answer::Declared(Box::new(store.reset_queue(&queue, "operator").await?))
        }
        Call::Find(queue, keys) => Answer::Find(store.find(&queue, &keys).await?),
        Call::Minutes(queue, back) => Answer::Minutes(store.minutes(&queue, back).await?),
        Call::Contract(change) => Answer::Contract(store.register_contract(change).await?),
        Call::Schedule(declaration) => {
            Answer::Schedule(Box::new(store.declare_schedule(*declaration).await?))
        }
        Call::Unschedule(name) => Answer::Was(store.remove_schedule(&name).await?),
        Call::PauseSchedule(name, paused) => {
            Answer::Was(store.pause_schedule(&name, paused, "operator").await?)
        }
        Call::Fire(fire) => Answer::Fire(store.fire(fire).await?),
        Call::Campaign(who, hold) => Answer::Campaign(store.campaign(ROLE, &who, hold).await?),
        Call::Resign(who) => Answer::Was(store.resign(ROLE, &who).await?),
        Call::Publish(assignment) => Answer::Publish(store.publish_assignment(assignment).await?),
        Call::Report(report) => {
            store.report_worker(*report).await?;
            Answer::Nothing
        }
        Call::Forget(who) => Answer::Was(store.forget_worker(&who).await?),
    })
}

/// Which free number a run gets is the store's own affair; that no two have
/// the same is looked at after each step. What failed by a lease's end comes in
/// no order.
fn plain(mut claim: Claim) -> Claim {
    for task in &mut claim.tasks {
        task.slot = task.slot.map(|_| 0);
    }
    claim.failed.sort();
    claim
}

/// The tasks of an extension come in no order.
fn in_order(answer: ExtendAnswer) -> ExtendAnswer {
    match answer {
        ExtendAnswer::Extended { mut cancelled, mut lost } => {
            cancelled.sort();
            lost.sort();
            ExtendAnswer::Extended { cancelled, lost }
        }
        ExtendAnswer::LeaseLost => ExtendAnswer::LeaseLost,
    }
}

/// An operator's action to its end: how far one step goes is the store's own
/// affair.
async fn operate(
    store: &dyn Store,
    mut operation: Operation,
) -> Result<Vec<(TaskId, OperationAnswer)>, StoreError> {
    let mut answers = Vec::new();
    loop {
        let report = store.operate(operation.clone()).await?;
        answers.extend(report.answers);
        let (Some(next), Selection::Matching { after, .. }) =
            (report.next, &mut operation.selection)
        else {
            return Ok(answers);
        };
        assert!(after.is_none_or(|after| next > after), "a step goes onwards");
        *after = Some(next);
    }
}
