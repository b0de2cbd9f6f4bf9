//! A task to be put, and a stored task as it is shown.

use gristmill::port::{Headers, NewTask, ProgressView};
use gristmill::{Encoding, Payload, Task, Timestamp};
use gristmill_contract::base64;
use gristmill_contract::task_settings::{Said, Wrong, shown};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::start;
use super::payload::PayloadOut;
use crate::known::Queues;
use crate::problem::{Answer, Problem};

/// A task as it is put.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskIn {
    #[serde(default, deserialize_with = "said")]
    payload: Option<Box<RawValue>>,
    payload_base64: Option<String>,
    encoding: Option<String>,
    key: Option<String>,
    delay: Option<String>,
    run_at: Option<String>,
    priority: Option<i16>,
    group: Option<String>,
    source: Option<String>,
    id: Option<String>,
    headers: Option<Headers>,
    timeout: Option<Value>,
    max_attempts: Option<Value>,
    backoff: Option<Value>,
    /// Somebody waits for its end.
    wanted: Option<bool>,
    /// Of a follow-up: where it goes.
    pub(crate) queue: Option<String>,
}

/// A payload of `null` is a payload.
fn said<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(reader).map(Some)
}

impl TaskIn {
    /// The task as the store takes it.
    pub(crate) fn meant(self) -> Answer<NewTask> {
        let mut own = Said::default();
        for (field, value) in [
            ("timeout", &self.timeout),
            ("max_attempts", &self.max_attempts),
            ("backoff", &self.backoff),
        ] {
            own.value(field, value.as_ref().unwrap_or(&Value::Null)).map_err(wrong)?;
        }
        let payload = payload(self.payload, self.payload_base64, self.encoding)?;
        let start = start(self.delay.as_deref(), self.run_at.as_deref())?;
        let mut settings = own.settings().map_err(wrong)?;
        if self.wanted == Some(true) {
            settings.set_wanted();
        }
        Ok(NewTask {
            payload,
            key: self.key,
            group: self.group,
            source: self.source,
            priority: self.priority.unwrap_or_default(),
            start,
            id: self.id,
            headers: self.headers.unwrap_or_default(),
            settings,
        })
    }
}

fn wrong(Wrong { field, why }: Wrong) -> Box<Problem> {
    Problem::field(field, why)
}

fn payload(
    json: Option<Box<RawValue>>,
    encoded: Option<String>,
    encoding: Option<String>,
) -> Answer<Payload> {
    let encoding = encoding
        .map(|name| name.parse::<Encoding>())
        .transpose()
        .map_err(|why| Problem::field("encoding", why))?;
    match (json, encoded) {
        (Some(_), Some(_)) => Err(Problem::field(
            "payload_base64",
            "'payload' and 'payload_base64' exclude each other",
        )),
        (None, None) => Err(Problem::field(
            "payload",
            "a task needs 'payload' (any JSON) or 'payload_base64' (any bytes)",
        )),
        (Some(json), None) => match encoding {
            None | Some(Encoding::Json) => Ok(Payload::json(json.get().to_owned().into_bytes())),
            Some(other) => Err(Problem::field(
                "encoding",
                format!("'payload' is JSON: send {other} as 'payload_base64'"),
            )),
        },
        (None, Some(text)) => {
            let bytes = base64::decode(&text)
                .ok_or_else(|| Problem::field("payload_base64", "this is not base64"))?;
            let encoding = encoding.unwrap_or(Encoding::Raw);
            if encoding == Encoding::Json
                && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err()
            {
                return Err(Problem::field("payload_base64", "its bytes are not JSON"));
            }
            Ok(Payload { bytes: bytes.into(), encoding })
        }
    }
}

/// A stored task.
#[derive(Debug, Serialize)]
pub(crate) struct TaskOut<'a> {
    id: String,
    queue: &'a str,
    state: &'static str,
    /// Pending told apart: ready, delayed or blocked.
    standing: &'static str,
    #[serde(flatten)]
    payload: PayloadOut,
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
    lease: Option<LeaseOut<'a>>,
    /// How far it is, while it runs and its handler says so.
    progress: Option<ProgressOut<'a>>,
    cancel_requested: bool,
    failed_at: Option<String>,
    error: Option<&'a str>,
    history: Vec<AttemptOut<'a>>,
    note: Option<NoteOut<'a>>,
    resolved_by: Option<&'a str>,
    resolved_at: Option<String>,
    headers: &'a Headers,
    /// `timeout`, `max_attempts` and `backoff`, where it has its own.
    #[serde(flatten)]
    own: Map<String, Value>,
    damaged: Option<&'a str>,
    /// Of a done task that is kept: what its handler returned.
    #[serde(flatten)]
    returned: Option<ResultOut>,
}

/// What a handler returned: one of the two.
#[derive(Debug, Serialize)]
pub(crate) struct ResultOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_base64: Option<String>,
}

impl ResultOut {
    pub(crate) fn of(value: &Payload) -> Self {
        let json = (value.encoding == Encoding::Json)
            .then(|| std::str::from_utf8(&value.bytes).ok())
            .flatten()
            .and_then(|text| RawValue::from_string(text.to_owned()).ok());
        let result_base64 = json.is_none().then(|| base64::encode(&value.bytes));
        ResultOut { result: json, result_base64 }
    }
}

/// Who holds it. Never the token: whoever reads it could settle in its name.
#[derive(Debug, Serialize)]
struct LeaseOut<'a> {
    worker: &'a str,
    until: String,
    slot: Option<u32>,
}

/// How far a running task is.
#[derive(Debug, Serialize)]
struct ProgressOut<'a> {
    done: u64,
    total: Option<u64>,
    percent: Option<u8>,
    message: &'a str,
    /// When the store heard of it.
    at: String,
}

impl<'a> ProgressOut<'a> {
    fn of(task: &'a Task) -> Option<Self> {
        let ProgressView { progress, at } = task.lease.as_ref()?.progress.as_ref()?;
        Some(ProgressOut {
            done: progress.done(),
            total: progress.total(),
            percent: progress.percent(),
            message: progress.message(),
            at: at.to_string(),
        })
    }
}

#[derive(Debug, Serialize)]
struct AttemptOut<'a> {
    worker: &'a str,
    claimed_at: String,
    ended_at: String,
    outcome: &'static str,
    error: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct NoteOut<'a> {
    text: &'a str,
    by: &'a str,
}

fn instant(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

impl<'a> TaskOut<'a> {
    pub(crate) fn of(task: &'a Task, queues: &Queues, now: Timestamp) -> Self {
        TaskOut {
            id: task.id.to_string(),
            queue: task.queue.as_str(),
            state: task.state.as_str(),
            standing: standing(task, now),
            payload: PayloadOut::of(&task.payload, queues.as_json(&task.queue, &task.payload)),
            key: task.key.as_deref(),
            group: task.group.as_deref(),
            source: task.source.as_deref(),
            priority: task.priority,
            attempts: task.attempts,
            claims: task.claims,
            expiries: task.expiries,
            created_at: task.created_at.to_string(),
            run_at: task.run_at.to_string(),
            prev_run_at: instant(task.prev_run_at),
            claimed_at: instant(task.claimed_at),
            lease: task.lease.as_ref().map(|lease| LeaseOut {
                worker: lease.worker.as_str(),
                until: lease.until.to_string(),
                slot: lease.slot,
            }),
            progress: ProgressOut::of(task),
            cancel_requested: task.cancel_requested,
            failed_at: instant(task.failed_at),
            error: task.error.as_deref(),
            history: task
                .history
                .iter()
                .map(|attempt| AttemptOut {
                    worker: attempt.worker.as_str(),
                    claimed_at: attempt.claimed_at.to_string(),
                    ended_at: attempt.ended_at.to_string(),
                    outcome: attempt.end.as_str(),
                    error: attempt.error.as_deref(),
                })
                .collect(),
            note: task.note.as_ref().map(|note| NoteOut { text: &note.text, by: &note.by }),
            resolved_by: task.resolved_by.as_deref(),
            resolved_at: instant(task.resolved_at),
            headers: &task.headers,
            own: shown(&task.settings),
            damaged: task.damaged.as_deref(),
            returned: None,
        }
    }

    /// With what its handler returned, where that is kept.
    pub(crate) fn with_result(mut self, value: Option<&Payload>) -> Self {
        self.returned = value.map(ResultOut::of);
        self
    }
}

/// Where a task stands: pending is told apart, as in stats.
pub(crate) fn standing(task: &Task, now: Timestamp) -> &'static str {
    match task.state {
        gristmill::TaskState::Pending if task.blocked => "blocked",
        gristmill::TaskState::Pending if task.run_at > now => "delayed",
        gristmill::TaskState::Pending => "ready",
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn meant(text: &str) -> Answer<NewTask> {
        crate::body::parse::<TaskIn>(text.as_bytes()).and_then(TaskIn::meant)
    }

    #[test]
    fn payloads_are_kept_as_they_were_sent() {
        let task = meant(r#"{"payload": {"b":1, "a":2.50} }"#).expect("a task");
        assert_eq!(&task.payload.bytes[..], br#"{"b":1, "a":2.50}"#);
        let task = meant(r#"{"payload":null,"delay":"5s","priority":-3}"#).expect("a task");
        assert_eq!(&task.payload.bytes[..], b"null");
        assert_eq!(
            (task.start, task.priority),
            (gristmill::port::Start::After(Duration::from_secs(5)), -3)
        );
        let task = meant(r#"{"payload_base64":"/wA="}"#).expect("a task");
        assert_eq!(
            (&task.payload.bytes[..], task.payload.encoding),
            (&[255, 0][..], Encoding::Raw)
        );
    }

    #[test]
    fn mistakes_name_their_field() {
        for (text, code, field) in [
            ("{}", "invalid", "payload"),
            (r#"{"payload":1,"payload_base64":""}"#, "invalid", "payload_base64"),
            (r#"{"payload":1,"when":2}"#, "unknown_field", "when"),
            (r#"{"payload":1,"delay":"5"}"#, "invalid", "delay"),
            (r#"{"payload":1,"delay":5}"#, "invalid", "delay"),
            (r#"{"payload":1,"delay":"5s","run_at":"2026-01-01T00:00:00Z"}"#, "invalid", "run_at"),
            (r#"{"payload":1,"run_at":"tomorrow"}"#, "invalid", "run_at"),
            (r#"{"payload":1,"priority":40000}"#, "invalid", "priority"),
            (r#"{"payload":1,"encoding":"xml"}"#, "invalid", "encoding"),
            (r#"{"payload":1,"encoding":"raw"}"#, "invalid", "encoding"),
            (r#"{"payload_base64":"***"}"#, "invalid", "payload_base64"),
            (r#"{"payload_base64":"/wA=","encoding":"json"}"#, "invalid", "payload_base64"),
            (r#"{"payload":1,"timeout":"5"}"#, "invalid", "timeout"),
            (r#"{"payload":1,"timeout":"0s"}"#, "invalid", "timeout"),
            (r#"{"payload":1,"max_attempts":0}"#, "invalid", "max_attempts"),
            (r#"{"payload":1,"backoff":{"base":"500d"}}"#, "invalid", "backoff.base"),
            (r#"{"payload":1,"headers":{"a":1}}"#, "invalid", "headers.a"),
        ] {
            let problem = meant(text).expect_err(text);
            assert_eq!((problem.code(), problem.at_field()), (code, Some(field)), "{text}");
        }
    }
}
