//! `GET /v1/audit`: who did what.

use axum::http::StatusCode;
use gristmill::QueueName;
use serde::Deserialize;
use serde_json::json;

use crate::access::Caller;
use crate::audit::{Audit, AuditLine, LISTED};
use crate::call::{self, Call};
use crate::limits::PAGE;
use crate::message::fields::from_text;
use crate::problem::{Answer, Problem};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    after: Option<String>,
    #[serde(default, deserialize_with = "from_text")]
    limit: Option<usize>,
}

pub(crate) async fn list(call: Call) -> Answer {
    let query: AuditQuery = call.query()?;
    let limit = query.limit.unwrap_or(PAGE);
    if limit == 0 || limit > LISTED {
        return Err(Problem::field("limit", format!("a page has from 1 to {LISTED} lines")));
    }
    let behind = after(query.after)?;
    let mut lines = Audit::of(&call.service.mill).list(behind, limit).await?;
    let next = (lines.len() == limit).then(|| lines.last().map(|line| line.id.clone())).flatten();
    lines.retain(|line| is_theirs(&call.caller, line));
    call::json(StatusCode::OK, &json!({ "lines": lines, "next": next }))
}

/// Behind which line to go on, if that can be one.
pub(crate) fn after(said: Option<String>) -> Answer<Option<String>> {
    let fits = |after: &String| !after.is_empty() && after.len() <= 64 && !after.contains('\0');
    if said.as_ref().is_some_and(|after| !fits(after)) {
        return Err(Problem::field("after", "use the 'next' of the page before"));
    }
    Ok(said)
}

/// Whether a line is about what they may see.
pub(crate) fn is_theirs(caller: &Caller, line: &AuditLine) -> bool {
    match line.deed.queue.as_deref().map(QueueName::new) {
        Some(Ok(queue)) => caller.reaches(&queue),
        _ => !caller.is_limited(),
    }
}
