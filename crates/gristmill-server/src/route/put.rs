//! `POST /v1/queues/{queue}/tasks`: one task, a list of them, or a stream.
//!
//! The one place where tasks enter through this crate, with `stream.rs`.

use axum::http::StatusCode;
use gristmill::port::{NewTask, PutReport, PutRequest};
use gristmill::{PutAnswer, QueueName, Refusal};
use serde::Deserialize;
use serde_json::json;
use tracing::Instrument;

use crate::body;
use crate::call::{self, Call};
use crate::known::Queues;
use crate::message::answer::PutOut;
use crate::message::task::TaskIn;
use crate::problem::{Answer, FAULT, INVALID, Problem, UNDONE};
use crate::route::stream;
use crate::service::Service;
use crate::trace::Trace;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PutQuery {
    atomic: Option<bool>,
}

pub(crate) async fn put(call: Call) -> Answer {
    let queue = call.queue()?;
    let query: PutQuery = call.query()?;
    let atomic = query.atomic.unwrap_or(false);
    let Call { service, caller, request, .. } = call;
    let (parts, body) = request.into_parts();
    if body::media_type(&parts.headers) == "application/x-ndjson" {
        if atomic {
            return Err(Problem::field("atomic", "a stream cannot be atomic: send a list"));
        }
        let trace = Trace::of(&parts.headers);
        return stream::put(service, caller, queue, trace, body).await;
    }
    body::expect_json(&parts.headers)?;
    let trace = Trace::of(&parts.headers);
    let span = span(&queue, &trace);
    let whole = body::read(&service, &parts.headers, body).await?;
    let queues = service.known.expect(&service, &queue).await?;
    if whole.bytes.trim_ascii_start().first() == Some(&b'[') {
        let tasks: Vec<TaskIn> = body::parse(&whole.bytes)?;
        return many(&service, queue, &queues, tasks, (atomic, &trace)).instrument(span).await;
    }
    let mut task = fitted(body::parse(&whole.bytes)?, &queue, &queues)?;
    trace.give(&mut task, service.store.limits().headers_bytes);
    let answer = one(&service, queue, task).instrument(span).await?;
    let status = match &answer {
        PutAnswer::Enqueued { .. } => StatusCode::CREATED,
        PutAnswer::Refused(why) => return Err(Problem::refused(why)),
        _ => StatusCode::OK,
    };
    call::json(status, &PutOut::from(answer))
}

/// What a put is a part of, for who records traces.
fn span(queue: &QueueName, trace: &Trace) -> tracing::Span {
    let traceparent = trace.parent();
    tracing::info_span!(target: "gristmill::task", "send", queue = %queue, traceparent)
}

/// Puts one task.
async fn one(service: &Service, queue: QueueName, task: NewTask) -> Answer<PutAnswer> {
    let request = PutRequest { queue, tasks: vec![task], atomic: false };
    let report = service.store.put(request).await?;
    let none = || Problem::new(&FAULT, "a put without an answer");
    report.answers.into_iter().next().ok_or_else(none)
}

/// A task as its queue's contract wants it, if it names no queue or this one.
pub(crate) fn fitted(task: TaskIn, queue: &QueueName, queues: &Queues) -> Answer<NewTask> {
    queues.fit(queue, meant(task, queue)?).map_err(|why| Problem::refused(&why))
}

fn meant(mut task: TaskIn, queue: &QueueName) -> Answer<NewTask> {
    match task.queue.take() {
        Some(named) if named != queue.as_str() => {
            Err(Problem::field("queue", format!("the address says '{queue}'")))
        }
        _ => task.meant(),
    }
}

/// Puts a list; each has its answer. A list in which one cannot be read is refused as
/// a whole: whoever wrote it has a mistake, not bad luck.
async fn many(
    service: &Service,
    queue: QueueName,
    queues: &Queues,
    tasks: Vec<TaskIn>,
    (atomic, trace): (bool, &Trace),
) -> Answer {
    let most = service.store.limits().put_tasks;
    if tasks.len() > most {
        let why = format!("{} tasks and {most} are allowed: send a stream of NDJSON", tasks.len());
        return Err(Problem::new(&INVALID, why));
    }
    let mut answers: Vec<Option<PutOut>> = Vec::with_capacity(tasks.len());
    let mut good = Vec::with_capacity(tasks.len());
    for (at, task) in tasks.into_iter().enumerate() {
        let task = meant(task, &queue).map_err(|problem| problem.within(&format!("[{at}]")))?;
        match queues.fit(&queue, task) {
            Ok(mut task) => {
                trace.give(&mut task, service.store.limits().headers_bytes);
                good.push(task);
                answers.push(None);
            }
            Err(why) if atomic => return Err(Problem::refused(&why).within(&format!("[{at}]"))),
            Err(why) => answers.push(Some(refused(&Problem::refused(&why)))),
        }
    }
    let report = flush(service, queue, good, atomic).await?;
    let undone = atomic && report.has_fault();
    let mut put = report.answers.into_iter();
    let answers: Vec<PutOut> = answers
        .into_iter()
        .map(|refused| {
            let unanswered = PutAnswer::Refused(Refusal::Invalid("no answer".to_owned()));
            refused.unwrap_or_else(|| put.next().unwrap_or(unanswered).into())
        })
        .collect();
    if undone {
        let why = "nothing was put: a task of this atomic put is a duplicate or was refused";
        return Err(Problem::new(&UNDONE, why).with("answers", json!(answers)));
    }
    call::json(StatusCode::OK, &answers)
}

/// Puts tasks in one step.
pub(crate) async fn flush(
    service: &Service,
    queue: QueueName,
    tasks: Vec<NewTask>,
    atomic: bool,
) -> Answer<PutReport> {
    if tasks.is_empty() {
        return Ok(PutReport::default());
    }
    Ok(service.store.put(PutRequest { queue, tasks, atomic }).await?)
}

/// A task that was not taken, among others.
pub(crate) fn refused(problem: &Problem) -> PutOut {
    PutOut::refused(problem.code(), problem.detail(), problem.at_field())
}
