//! What is done to one task, or to those that are selected.

use gristmill::TaskId;
use gristmill::port::{Action, Operation, OperationReport, Selection, Start};

use super::filter::Asked;
use crate::call::Call;
use crate::dashboard::fields::Fields;
use crate::dashboard::view::View;
use crate::dashboard::{flash, form};
use crate::message::fields::{id, span, text};
use crate::problem::{Answer, Problem};
use crate::service::Service;

/// The action that a form names.
pub(crate) fn action(fields: &Fields) -> Answer<Action> {
    let said = fields.one("action").unwrap_or_default();
    let found = Action::ALL.into_iter().find(|action| action.as_str() == said);
    found.ok_or_else(|| Problem::field("action", "use retry, resolve, discard or cancel"))
}

/// The note that a form has.
pub(crate) fn note(fields: &Fields) -> Answer<Option<String>> {
    fields.one("note").map(|note| text("note", note, 4096)).transpose()
}

/// When what is retried may run again: at once, after a span, or at a time.
fn starts(fields: &Fields) -> Answer<Start> {
    let said = fields.one("when").filter(|_| fields.one("action").as_deref() == Some("retry"));
    let Some(said) = said else { return Ok(Start::Now) };
    if let Ok(delay) = span("when", &said) {
        return Ok(Start::After(delay));
    }
    let at = said.parse().map(Start::At);
    at.map_err(|_| {
        Problem::field("when", "say how long, like 10m, or a time like 2026-11-15T08:30:00Z")
    })
}

/// The word under which the next page tells of it.
fn told(action: Action) -> &'static str {
    match action {
        Action::RetryFresh => Action::Retry.as_str(),
        other => other.as_str(),
    }
}

async fn operate(
    service: &Service,
    view: &View,
    fields: &Fields,
    ids: Vec<TaskId>,
) -> Answer<(Action, OperationReport)> {
    let action = action(fields)?;
    let limit = service.store.limits().page;
    if ids.len() > limit {
        return Err(Problem::field("ids", format!("name at most {limit} tasks")));
    }
    let selection = Selection::Ids(ids);
    let (by, note) = (view.viewer.name.clone(), note(fields)?);
    let caller = &view.viewer.caller;
    caller.note(|deed| deed.note.clone_from(&note));
    let start = starts(fields)?;
    let operation = Operation { action, selection, limit, by, note, start };
    let report = service.store.operate(operation).await?;
    caller.note(|deed| {
        deed.action = format!("tasks.{}", action.as_str());
        deed.moved = Some(report.moved() as u64);
    });
    Ok((action, report))
}

/// `POST /tasks/act`: those that are selected.
pub(crate) async fn selected(call: Call, view: View) -> Answer {
    let (service, fields) = form::read(call).await?;
    // Only what a filter can say is taken over into the next address.
    let asked = fields.one("asked").unwrap_or_default();
    let asked = Asked::read(&Fields::read(asked.as_bytes())).query();
    let place = format!("../tasks?{asked}");
    let place = place.trim_end_matches('?');
    let ids = fields.all("ids").map(|one| id("ids", one)).collect::<Answer<Vec<_>>>()?;
    if ids.is_empty() {
        return flash::see(place, "none", &[]);
    }
    let (action, report) = operate(&service, &view, &fields, ids).await?;
    flash::see(place, told(action), &numbers(&report))
}

/// `POST /tasks/{id}/act`.
pub(crate) async fn one(call: Call, view: View) -> Answer {
    let id = id("id", call.param("id"))?;
    let (service, fields) = form::read(call).await?;
    let (action, report) = operate(&service, &view, &fields, vec![id]).await?;
    let stands = service.store.get(id).await?.is_some();
    let place = if stands { format!("../{id}") } else { "../../tasks".to_owned() };
    flash::see(&place, told(action), &numbers(&report))
}

fn numbers(report: &OperationReport) -> [(&'static str, u64); 2] {
    let moved = report.moved() as u64;
    [("n", moved), ("not", (report.answers.len() as u64).saturating_sub(moved))]
}
