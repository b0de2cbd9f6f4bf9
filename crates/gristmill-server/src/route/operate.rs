//! `POST /v1/tasks/retry|discard|cancel|resolve`: what operators do to tasks, at once by
//! their ids, or by a filter as an operation that goes on by itself
//! (`crate::operation`); and `/v1/operations`, where it is looked after.

use axum::http::StatusCode;
use gristmill::port::{
    Action, Operation, OperationAnswer, OperationReport, Selection, Start, TaskFilter,
};
use gristmill::{QueueName, TaskId};
use serde::{Deserialize, Serialize};

use super::tasks::FilterIn;
use crate::access::{Caller, Scope};
use crate::call::{self, Call};
use crate::message::fields::{by, id, start, text};
use crate::operation::{NotBegun, OPEN_MAX, OperationView};
use crate::problem::{Answer, NO_OPERATION, Problem, TOO_MANY_OPERATIONS};
use crate::service::Service;

/// An operator's wish.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperateIn {
    ids: Option<Vec<String>>,
    filter: Option<FilterIn>,
    note: Option<String>,
    by: Option<String>,
}

/// The wish that failed tasks run again, and when.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryIn {
    ids: Option<Vec<String>>,
    filter: Option<FilterIn>,
    note: Option<String>,
    by: Option<String>,
    delay: Option<String>,
    run_at: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize)]
struct OperateOut {
    /// Tasks that were moved, or asked to cancel.
    moved: u64,
    /// One answer each, by id.
    answers: Vec<OneOut>,
}

#[derive(Debug, Serialize)]
struct OneOut {
    id: String,
    outcome: &'static str,
    /// The task that holds its key's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

impl OneOut {
    fn of(id: TaskId, answer: OperationAnswer) -> Self {
        let plain =
            |outcome| OneOut { id: id.to_string(), outcome, duplicate_of: None, state: None };
        match answer {
            OperationAnswer::Moved => plain("moved"),
            OperationAnswer::CancelRequested => plain("cancel_requested"),
            OperationAnswer::DuplicateOf(other) => {
                OneOut { duplicate_of: Some(other.to_string()), ..plain("duplicate") }
            }
            OperationAnswer::WrongState(state) => {
                OneOut { state: Some(state.as_str()), ..plain("wrong_state") }
            }
            OperationAnswer::Held => plain("held"),
            OperationAnswer::Gone => plain("gone"),
        }
    }
}

pub(crate) async fn retry(call: Call) -> Answer {
    let caller = call.caller.clone();
    let (service, asked) = call.json::<RetryIn>().await?;
    let RetryIn { ids, filter, note, by, delay, run_at } = asked;
    let start = start(delay.as_deref(), run_at.as_deref())?;
    if start != Start::Now && filter.is_some() {
        let field = if delay.is_some() { "delay" } else { "run_at" };
        return Err(Problem::field(field, "a time is for tasks that 'ids' names"));
    }
    let asked = OperateIn { ids, filter, note, by };
    carried_out(&service, caller, asked, Action::Retry, start).await
}

pub(crate) async fn resolve(call: Call) -> Answer {
    operate(call, Action::Resolve).await
}

pub(crate) async fn discard(call: Call) -> Answer {
    operate(call, Action::Discard).await
}

pub(crate) async fn cancel(call: Call) -> Answer {
    operate(call, Action::Cancel).await
}

async fn operate(call: Call, action: Action) -> Answer {
    let caller = call.caller.clone();
    let (service, asked) = call.json::<OperateIn>().await?;
    carried_out(&service, caller, asked, action, Start::Now).await
}

async fn carried_out(
    service: &Service,
    caller: Caller,
    asked: OperateIn,
    action: Action,
    start: Start,
) -> Answer {
    let note = asked.note.map(|note| text("note", note, 4096)).transpose()?;
    let by = by(&caller, asked.by)?;
    caller.note(|deed| deed.note.clone_from(&note));
    let limit = service.store.limits().page;
    match (asked.ids, asked.filter) {
        (Some(ids), None) => {
            if ids.is_empty() || ids.len() > limit {
                return Err(Problem::field("ids", format!("name from 1 to {limit} tasks")));
            }
            let ids = ids.iter().enumerate().map(|(at, one)| id(&format!("ids[{at}]"), one));
            let (ours, foreign) = sorted(service, &caller, ids.collect::<Answer<_>>()?).await?;
            let mut report = OperationReport::default();
            if !ours.is_empty() {
                let selection = Selection::Ids(ours);
                let operation = Operation { action, selection, limit, by, note, start };
                report = service.store.operate(operation).await?;
            }
            let moved = report.moved() as u64;
            caller.note(|deed| deed.moved = Some(moved));
            report.answers.extend(foreign.into_iter().map(|id| (id, OperationAnswer::Gone)));
            report.answers.sort_by_key(|(id, _)| *id);
            let answers = report.answers.into_iter().map(|(id, a)| OneOut::of(id, a)).collect();
            call::json(StatusCode::OK, &OperateOut { moved, answers })
        }
        (None, Some(filter)) => {
            let filter = filtered(service, &caller, filter, action).await?;
            match service.operations.begin(action, &filter, None, by, note).await {
                Ok(operation) => {
                    caller.note(|deed| {
                        deed.target = Some(operation.id.clone());
                        deed.queue = operation.queue().map(str::to_owned);
                    });
                    call::json(StatusCode::ACCEPTED, &operation)
                }
                Err(NotBegun::Store(error)) => Err(error.into()),
                Err(NotBegun::TooMany) => {
                    let why = format!("{OPEN_MAX} operations are not over yet");
                    Err(Problem::new(&TOO_MANY_OPERATIONS, why))
                }
            }
        }
        (Some(_), Some(_)) => {
            Err(Problem::field("filter", "'ids' and 'filter' exclude each other"))
        }
        (None, None) => {
            Err(Problem::field("ids", "say which tasks: 'ids', or 'filter' ({} means all)"))
        }
    }
}

/// Those of the tasks that are the caller's, and those that are as if they were gone.
async fn sorted(
    service: &Service,
    caller: &Caller,
    ids: Vec<TaskId>,
) -> Answer<(Vec<TaskId>, Vec<TaskId>)> {
    if !caller.is_limited() {
        return Ok((ids, Vec::new()));
    }
    let (mut ours, mut foreign) = (Vec::new(), Vec::new());
    for id in ids {
        match service.store.get(id).await? {
            Some(task) if !caller.sees(&task) => foreign.push(id),
            _ => ours.push(id),
        }
    }
    foreign.sort_unstable();
    foreign.dedup();
    Ok((ours, foreign))
}

async fn filtered(
    service: &Service,
    caller: &Caller,
    filter: FilterIn,
    action: Action,
) -> Answer<TaskFilter> {
    let mut filter = filter.meant().map_err(|problem| problem.within("filter"))?;
    if filter.blocked.is_some() {
        let why = "use pending, processing or failed: ready and delayed change by themselves";
        return Err(Problem::field("filter.state", why));
    }
    if let Some(state) = filter.state.filter(|state| !action.applies_to(*state)) {
        let why = format!("{} does not apply to {state} tasks", action.as_str());
        return Err(Problem::field("filter.state", why));
    }
    if filter.queue.is_none() && caller.is_limited() {
        let why = "the token is for some queues only: say which one is meant";
        let only = caller.only().cloned();
        filter.queue = Some(only.ok_or_else(|| Problem::field("filter.queue", why))?);
    }
    if let Some(queue) = &filter.queue {
        caller.expect_for(Scope::Admin, queue).map_err(|p| p.within("filter"))?;
        service.known.expect(service, queue).await.map_err(|p| p.within("filter"))?;
    }
    Ok(filter)
}

/// `GET /v1/operations`.
pub(crate) async fn list(call: Call) -> Answer {
    let mut all = call.service.operations.list().await?;
    all.retain(|one| is_theirs(&call.caller, one));
    call::json(StatusCode::OK, &all)
}

/// One without a queue is for all of them.
fn is_theirs(caller: &Caller, operation: &OperationView) -> bool {
    match operation.queue().map(QueueName::new) {
        Some(Ok(queue)) => caller.reaches(&queue),
        _ => !caller.is_limited(),
    }
}

/// The operation, if it is the caller's.
async fn found(service: &Service, caller: &Caller, id: &str) -> Answer<OperationView> {
    let operation = service.operations.get(id).await?;
    operation.filter(|one| is_theirs(caller, one)).ok_or_else(|| unknown(id))
}

/// `GET /v1/operations/{id}`.
pub(crate) async fn get(call: Call) -> Answer {
    let id = call.param("id");
    call::json(StatusCode::OK, &found(&call.service, &call.caller, id).await?)
}

/// Who has it stop.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StopIn {
    by: Option<String>,
}

/// `POST /v1/operations/{id}/stop`.
pub(crate) async fn stop(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<StopIn>().await?;
    let by = by(&caller, asked.by)?;
    found(&service, &caller, &id).await?;
    match service.operations.stop(&id, &by).await? {
        Some(operation) => call::json(StatusCode::OK, &operation),
        None => Err(unknown(&id)),
    }
}

fn unknown(id: &str) -> Box<Problem> {
    let shown: String = id.chars().take(40).collect();
    Problem::new(&NO_OPERATION, format!("no operation '{shown}' is known")).at("id")
}
