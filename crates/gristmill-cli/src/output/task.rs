//! A task as programs get it (a mirror struct, so that the model can change
//! without breaking scripts) and as people read it.

use gristmill::port::{Encoding, Ending, Headers, ProgressView, State};
use gristmill::{Payload, Task, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use gristmill_contract::{base64, task_settings};

use super::cut;
use crate::contracts::Contracts;

/// A task's fields under their stable names.
#[derive(Serialize)]
pub(crate) struct TaskJson<'a> {
    id: i64,
    queue: &'a str,
    state: &'static str,
    blocked: bool,
    key: Option<&'a str>,
    group: Option<&'a str>,
    source: Option<&'a str>,
    priority: i16,
    attempts: u32,
    claims: u32,
    expiries: u32,
    created_at: String,
    run_at: String,
    prev_run_at: Option<String>,
    claimed_at: Option<String>,
    lease: Option<LeaseJson<'a>>,
    /// How far it is, while it runs and its handler says so.
    progress: Option<ProgressJson<'a>>,
    cancel_requested: bool,
    failed_at: Option<String>,
    error: Option<&'a str>,
    history: Vec<AttemptJson<'a>>,
    note: Option<NoteJson<'a>>,
    resolved_by: Option<&'a str>,
    resolved_at: Option<String>,
    headers: &'a Headers,
    /// `timeout`, `max_attempts` and `backoff`, where it has its own.
    #[serde(flatten)]
    own: Map<String, Value>,
    /// What its handler kept for the next attempt, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<PayloadJson>,
    /// What its handler returned, of a done task that its queue keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<PayloadJson>,
    damaged: Option<&'a str>,
    encoding: &'static str,
    payload: PayloadJson,
}

#[derive(Serialize)]
struct LeaseJson<'a> {
    worker: &'a str,
    until: String,
    slot: Option<u32>,
}

/// How far a running task is.
#[derive(Serialize)]
pub(crate) struct ProgressJson<'a> {
    done: u64,
    total: Option<u64>,
    percent: Option<u8>,
    message: &'a str,
    /// When the store heard of it.
    at: String,
}

impl<'a> ProgressJson<'a> {
    pub(crate) fn of(task: &'a Task) -> Option<Self> {
        let ProgressView { progress, at } = task.lease.as_ref()?.progress.as_ref()?;
        Some(ProgressJson {
            done: progress.done(),
            total: progress.total(),
            percent: progress.percent(),
            message: progress.message(),
            at: at.to_string(),
        })
    }
}

/// How far a running task is, as people read it; nothing where nobody says so.
pub(crate) fn progress_text(task: &Task) -> Option<String> {
    let progress = &task.lease.as_ref()?.progress.as_ref()?.progress;
    let percent = progress.percent().map_or_else(String::new, |percent| format!("{percent} % "));
    Some(cut(&format!("{percent}{progress}"), 60))
}

#[derive(Serialize)]
struct AttemptJson<'a> {
    worker: &'a str,
    claimed_at: String,
    ended_at: String,
    outcome: &'static str,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct NoteJson<'a> {
    text: &'a str,
    by: &'a str,
}

/// A payload inside JSON: itself where it is JSON, by its contract where it
/// has one, otherwise as text or, when it is not even that, as base64.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum PayloadJson {
    Json(Box<RawValue>),
    Text { text: String },
    Base64 { base64: String },
}

impl PayloadJson {
    pub(crate) fn of(payload: &Payload, view: Option<String>) -> Self {
        if let Some(json) = view.and_then(|json| RawValue::from_string(json).ok()) {
            return PayloadJson::Json(json);
        }
        match std::str::from_utf8(&payload.bytes) {
            Ok(text) => {
                let json = (payload.encoding == Encoding::Json)
                    .then(|| RawValue::from_string(text.to_owned()).ok());
                match json.flatten() {
                    Some(json) => PayloadJson::Json(json),
                    None if payload.encoding == Encoding::Msgpack => {
                        PayloadJson::Base64 { base64: base64::encode(&payload.bytes) }
                    }
                    None => PayloadJson::Text { text: text.to_owned() },
                }
            }
            Err(_) => PayloadJson::Base64 { base64: base64::encode(&payload.bytes) },
        }
    }
}

impl PayloadJson {
    /// What a handler kept: only its program knows the form.
    fn kept(kept: &[u8]) -> Self {
        let json = std::str::from_utf8(kept).ok();
        let json = json.and_then(|text| RawValue::from_string(text.to_owned()).ok());
        json.map_or_else(|| PayloadJson::of(&Payload::raw(kept.to_vec()), None), PayloadJson::Json)
    }
}

fn text(instant: Option<Timestamp>) -> Option<String> {
    instant.map(|instant| instant.to_string())
}

impl<'a> TaskJson<'a> {
    /// With what its handler returned, where that is kept.
    pub(crate) fn with_result(mut self, result: Option<&Payload>) -> Self {
        self.result = result.map(|result| PayloadJson::of(result, None));
        self
    }

    pub(crate) fn of(task: &'a Task, contracts: &Contracts) -> Self {
        TaskJson {
            id: task.id.0,
            queue: task.queue.as_str(),
            state: task.state.as_str(),
            blocked: task.blocked,
            key: task.key.as_deref(),
            group: task.group.as_deref(),
            source: task.source.as_deref(),
            priority: task.priority,
            attempts: task.attempts,
            claims: task.claims,
            expiries: task.expiries,
            created_at: task.created_at.to_string(),
            run_at: task.run_at.to_string(),
            prev_run_at: text(task.prev_run_at),
            claimed_at: text(task.claimed_at),
            lease: task.lease.as_ref().map(|lease| LeaseJson {
                worker: lease.worker.as_str(),
                until: lease.until.to_string(),
                slot: lease.slot,
            }),
            progress: ProgressJson::of(task),
            cancel_requested: task.cancel_requested,
            failed_at: text(task.failed_at),
            error: task.error.as_deref(),
            history: task
                .history
                .iter()
                .map(|attempt| AttemptJson {
                    worker: attempt.worker.as_str(),
                    claimed_at: attempt.claimed_at.to_string(),
                    ended_at: attempt.ended_at.to_string(),
                    outcome: attempt.end.as_str(),
                    error: attempt.error.as_deref(),
                })
                .collect(),
            note: task.note.as_ref().map(|note| NoteJson { text: &note.text, by: &note.by }),
            resolved_by: task.resolved_by.as_deref(),
            resolved_at: text(task.resolved_at),
            headers: &task.headers,
            own: task_settings::shown(&task.settings),
            checkpoint: task.checkpoint.as_deref().map(PayloadJson::kept),
            result: None,
            damaged: task.damaged.as_deref(),
            encoding: task.payload.encoding.as_str(),
            payload: PayloadJson::of(&task.payload, shown(task, contracts)),
        }
    }
}

/// What came of a task.
#[derive(Serialize)]
pub(crate) struct EndingJson {
    state: &'static str,
    result: Option<PayloadJson>,
    error: Option<String>,
}

impl EndingJson {
    pub(crate) fn of(ending: &Ending) -> Self {
        EndingJson {
            state: ending.as_str(),
            result: ending.value().map(|value| PayloadJson::of(value, None)),
            error: ending.error().map(str::to_owned),
        }
    }
}

/// What people see of a result.
pub(crate) fn result_text(result: &Payload) -> String {
    match std::str::from_utf8(&result.bytes) {
        Ok(text) if result.encoding != Encoding::Msgpack => text.trim_end().to_owned(),
        _ => format!("{} bytes of {}", result.bytes.len(), result.encoding),
    }
}

/// The payload as its contract shows it. One that the contract cannot read is
/// shown as it is.
fn shown(task: &Task, contracts: &Contracts) -> Option<String> {
    contracts.as_json(&task.queue, &task.payload).ok().flatten()
}

/// What people see of a payload.
pub(crate) fn payload_text(task: &Task, contracts: &Contracts) -> String {
    let payload = &task.payload;
    if let Some(json) = shown(task, contracts) {
        return json;
    }
    match std::str::from_utf8(&payload.bytes) {
        Ok(text) if payload.encoding != Encoding::Msgpack => text.to_owned(),
        _ => format!("{} bytes of {}", payload.bytes.len(), payload.encoding),
    }
}

/// Where a task stands, in the words of `stats`: pending is told apart.
pub(crate) fn standing(task: &Task, now: Timestamp) -> &'static str {
    match task.state {
        State::Pending if task.blocked => "blocked",
        State::Pending if task.run_at > now => "delayed",
        State::Pending => "ready",
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(payload: &Payload) -> String {
        serde_json::to_string(&PayloadJson::of(payload, None)).expect("json")
    }

    #[test]
    fn a_payload_is_itself_where_it_is_json() {
        assert_eq!(json(&Payload::json(r#"{"b":1, "a":2.50}"#)), r#"{"b":1, "a":2.50}"#);
        assert_eq!(json(&Payload::json("not json")), r#"{"text":"not json"}"#);
        assert_eq!(json(&Payload::raw("plain")), r#"{"text":"plain"}"#);
        assert_eq!(json(&Payload::raw(vec![0xff, 0x00])), r#"{"base64":"/wA="}"#);
        assert_eq!(json(&Payload::msgpack(vec![0x01])), r#"{"base64":"AQ=="}"#);
    }
}
