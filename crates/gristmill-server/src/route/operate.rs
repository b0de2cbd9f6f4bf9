//! `POST /v1/tasks/retry|discard|cancel|resolve`: what operators do to tasks, at once by
//! their ids, or by a filter as an operation that goes on by itself
//! (`crate::operation`); and `/v1/operations`, where it is looked after.

use axum::http::StatusCode;
use gristmill::TaskId;
use gristmill::port::{Action, Operation, OperationAnswer, Selection, TaskFilter};
use serde::{Deserialize, Serialize};

use super::tasks::FilterIn;
use crate::call::{self, Call};
use crate::message::fields::{by, id, text};
use crate::operation::{NotBegun, OPEN_MAX};
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
            if ids.is_empty() || ids.len() > limit {
                return Err(Problem::field("ids", format!("name from 1 to {limit} tasks")));
            }
            let ids = ids.iter().enumerate().map(|(at, one)| id(&format!("ids[{at}]"), one));
            let selection = Selection::Ids(ids.collect::<Answer<_>>()?);
            let operation = Operation { action, selection, limit, by, note };
            let report = service.store.operate(operation).await?;
            let moved = report.moved() as u64;
            let answers = report.answers.into_iter().map(|(id, a)| OneOut::of(id, a)).collect();
            call::json(StatusCode::OK, &OperateOut { moved, answers })
        }
        (None, Some(filter)) => {
            let filter = filtered(&service, filter, action).await?;
            match service.operations.begin(action, &filter, by, note).await {
                Ok(operation) => call::json(StatusCode::ACCEPTED, &operation),
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

/// `GET /v1/operations`.
pub(crate) async fn list(call: Call) -> Answer {
    call::json(StatusCode::OK, &call.service.operations.list().await?)
}

/// `GET /v1/operations/{id}`.
pub(crate) async fn get(call: Call) -> Answer {
    let id = call.param("id");
    match call.service.operations.get(id).await? {
        Some(operation) => call::json(StatusCode::OK, &operation),
        None => Err(unknown(id)),
    }
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
    let (service, asked) = call.json_or_default::<StopIn>().await?;
    match service.operations.stop(&id, &by(asked.by)?).await? {
        Some(operation) => call::json(StatusCode::OK, &operation),
        None => Err(unknown(&id)),
    }
}

fn unknown(id: &str) -> Box<Problem> {
    let shown: String = id.chars().take(40).collect();
    Problem::new(&NO_OPERATION, format!("no operation '{shown}' is known")).at("id")
}
