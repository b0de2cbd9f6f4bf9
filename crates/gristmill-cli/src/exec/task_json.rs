//! A task as JSON, for who handles it and is not Rust: a program that stays, a URL.

use std::time::Instant;

use gristmill::Encoding;
use gristmill::port::{ClaimedTask, Headers};
use gristmill::worker::Context;
use gristmill_contract::base64;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct TaskOut<'a> {
    /// First, for those who find it without reading JSON.
    id: &'a str,
    queue: &'a str,
    attempt: u32,
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<u32>,
    headers: &'a Headers,
    encoding: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    timeout_ms: u64,
}

/// The task in one line, without its end.
///
/// # Errors
/// In words, when it has no form as JSON.
pub(crate) fn line(
    task: &ClaimedTask,
    context: &Context,
    encoding: Encoding,
    payload: &[u8],
) -> Result<Vec<u8>, String> {
    // What says that it is JSON and is not would be the end of all of it.
    let json: Option<&RawValue> = match encoding {
        Encoding::Json => serde_json::from_slice(payload).ok(),
        _ => None,
    };
    let left = context.deadline.saturating_duration_since(Instant::now());
    let task = TaskOut {
        id: &task.id.to_string(),
        queue: context.queue.as_str(),
        attempt: task.attempt,
        key: task.key.as_deref(),
        group: task.group.as_deref(),
        source: task.source.as_deref(),
        concurrent: task.concurrent,
        slot: task.slot,
        headers: &task.headers,
        encoding: encoding.to_string(),
        payload: json,
        payload_base64: json.is_none().then(|| base64::encode(payload)),
        timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
    };
    let mut line = serde_json::to_vec(&task).map_err(|error| error.to_string())?;
    // Between the parts of a payload that was written over several lines; within a text
    // JSON has no such byte.
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    Ok(line)
}
