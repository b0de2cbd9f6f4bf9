//! `POST /v1/tasks/retry|discard|cancel|resolve`: what operators do to tasks, by their
//! ids, or by a filter in steps.
//!
//! A filter is acted on for a bounded time; the answer says how far it came, and the
//! caller goes on from there. Nothing is promised that a restart could break.

use axum::http::StatusCode;
use gristmill::TaskId;
use gristmill::port::{Action, Operation, OperationAnswer, Selection, TaskFilter};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::tasks::FilterIn;
use crate::call::{self, Call};
use crate::limits::ACT;
use crate::message::fields::{by, id, text};
use crate::problem::{Answer, NO_OPERATION, Problem};
use crate::service::Service;

/// An operator's wish.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperateIn {
    ids: Option<Vec<String>>,
    filter: Option<FilterIn>,
    /// With a filter: where the answer before it ended.
    after: Option<String>,
    note: Option<String>,
    by: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize)]
struct OperateOut {
    /// Tasks that were moved, or asked to cancel.
    moved: u64,
    /// By ids: one answer each, by id. By a filter: those that could not be moved.
    answers: Vec<OneOut>,
    /// Everything that was meant has been looked at.
    complete: bool,
    /// Where to go on otherwise.
    next: Option<String>,
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
    operate(call, Action::Retry).await
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
    let (service, asked) = call.json::<OperateIn>().await?;
    let note = asked.note.map(|note| text("note", note, 4096)).transpose()?;
    let by = by(asked.by)?;
    let limit = service.store.limits().page;
    match (asked.ids, asked.filter) {
        (Some(ids), None) => {
            if asked.after.is_some() {
                return Err(Problem::field("after", "'after' goes with 'filter'"));
            }
            if ids.is_empty() || ids.len() > limit {
                return Err(Problem::field("ids", format!("name from 1 to {limit} tasks")));
            }
            let ids = ids.iter().enumerate().map(|(at, one)| id(&format!("ids[{at}]"), one));
            let selection = Selection::Ids(ids.collect::<Answer<_>>()?);
            let operation = Operation { action, selection, limit, by, note };
            let report = service.store.operate(operation).await?;
            let moved = report.moved() as u64;
            let answers = report.answers.into_iter().map(|(id, a)| OneOut::of(id, a)).collect();
            call::json(StatusCode::OK, &OperateOut { moved, answers, complete: true, next: None })
        }
        (None, Some(filter)) => {
            let after = asked.after.map(|after| id("after", &after)).transpose()?;
            let filter = filtered(&service, filter, action).await?;
            let step = |after| {
                let selection = Selection::Matching { filter: filter.clone(), after };
                Operation { action, selection, limit, by: by.clone(), note: note.clone() }
            };
            let done = in_steps(&service, step, after).await?;
            call::json(StatusCode::OK, &done)
        }
        (Some(_), Some(_)) => {
            Err(Problem::field("filter", "'ids' and 'filter' exclude each other"))
        }
        (None, None) => {
            Err(Problem::field("ids", "say which tasks: 'ids', or 'filter' ({} means all)"))
        }
    }
}

async fn filtered(service: &Service, filter: FilterIn, action: Action) -> Answer<TaskFilter> {
    let (filter, part) = filter.meant().map_err(|problem| problem.within("filter"))?;
    if part.is_some() {
        let why = "use pending, processing or failed: ready and delayed change by themselves";
        return Err(Problem::field("filter.state", why));
    }
    if let Some(state) = filter.state.filter(|state| !action.applies_to(*state)) {
        let why = format!("{} does not apply to {state} tasks", action.as_str());
        return Err(Problem::field("filter.state", why));
    }
    if let Some(queue) = &filter.queue {
        service.known.expect(service, queue).await.map_err(|p| p.within("filter"))?;
    }
    Ok(filter)
}

/// Most tasks that are told of one by one in a step with a filter.
const TOLD: usize = 1_000;

async fn in_steps(
    service: &Service,
    step: impl Fn(Option<TaskId>) -> Operation,
    mut after: Option<TaskId>,
) -> Answer<OperateOut> {
    let until = Instant::now() + ACT;
    let (mut moved, mut answers) = (0, Vec::new());
    loop {
        let report = match service.store.operate(step(after)).await {
            Ok(report) => report,
            // What was done before is done, and told.
            Err(error) if moved > 0 => {
                let problem: Box<Problem> = error.into();
                let next = after.map(|after| after.to_string());
                return Err(problem.with("moved", moved.into()).with("next", next.into()));
            }
            Err(error) => return Err(error.into()),
        };
        moved += report.moved() as u64;
        let left = report.answers.into_iter().filter(|(_, answer)| {
            !matches!(answer, OperationAnswer::Moved | OperationAnswer::CancelRequested)
        });
        answers.extend(left.map(|(id, answer)| OneOut::of(id, answer)));
        after = report.next;
        let stops = Instant::now() >= until || answers.len() >= TOLD || service.is_stopping();
        if after.is_none() || stops {
            let next = after.map(|after| after.to_string());
            return Ok(OperateOut { moved, answers, complete: after.is_none(), next });
        }
    }
}

/// Operations are not kept by this version: no id names one.
pub(crate) async fn operation(call: Call) -> Answer {
    let shown: String = call.param("id").chars().take(40).collect();
    Err(Problem::new(&NO_OPERATION, format!("no operation '{shown}' is known")).at("id"))
}
