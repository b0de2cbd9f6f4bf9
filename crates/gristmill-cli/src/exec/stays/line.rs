//! What is said between us and a program that stays: one JSON object a line.
//!
//! ```text
//!   from it   {"gristmill":1,"ready":true}              first of all
//!   to it     {"id","attempt",…,"payload" | "payload_base64","timeout_ms"}
//!   from it   {"id","progress"}                         as often as it likes
//!   from it   {"id","outcome","error"?,"after"?,"result"?}    one for each task
//! ```

use std::time::Duration;

use bytes::Bytes;
use gristmill::port::{ClaimedTask, Limits};
use gristmill::worker::Context;
use gristmill::{Encoding, Progress};
use gristmill_contract::duration;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::task_json;

/// Which version of all this is spoken.
const VERSION: u64 = 1;

/// Most bytes of a line, in both directions: twice what a payload may have.
pub(super) fn most() -> usize {
    2 * Limits::default().payload_bytes
}

/// The line that gives a task to the program.
///
/// # Errors
/// In words, when it would be too long.
pub(super) fn of_task(
    task: &ClaimedTask,
    context: &Context,
    encoding: Encoding,
    payload: &[u8],
) -> Result<Vec<u8>, String> {
    let mut line = task_json::line(task, context, encoding, payload)?;
    line.push(b'\n');
    if line.len() > most() {
        let (bytes, most) = (line.len(), most());
        return Err(format!("the task's line has {bytes} bytes and {most} are allowed"));
    }
    Ok(line)
}

/// Whether the first line says that the program is ready.
///
/// # Errors
/// In words, what it says instead.
pub(super) fn is_ready(line: &[u8]) -> Result<(), String> {
    let wanted = "its first line has to be {\"gristmill\":1,\"ready\":true}";
    let Ok(said) = serde_json::from_slice::<Value>(line) else {
        return Err(format!("{wanted}, and it is {}", shown(line)));
    };
    match (said.get("gristmill").and_then(Value::as_u64), said.get("ready")) {
        (Some(VERSION), Some(Value::Bool(true))) => Ok(()),
        (Some(version), _) if version != VERSION => {
            Err(format!("it speaks version {version} of this protocol, and {VERSION} is known"))
        }
        _ => Err(format!("{wanted}, and it is {}", shown(line))),
    }
}

/// What a program said about its task.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// How far it is, where that can be read.
    Progress(Option<Progress>),
    /// How it ended.
    Ended(Ended),
    /// It ended in a way that cannot be understood.
    Unclear(String),
}

/// How a task ended, in the program's words.
#[derive(Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) how: How,
    pub(super) error: Option<String>,
    pub(super) after: Option<Duration>,
    /// JSON, as it was written.
    pub(super) result: Option<String>,
}

/// The outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Done,
    Error,
    Retry,
    Fail,
    Release,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerIn {
    #[serde(rename = "id")]
    _id: IgnoredAny,
    outcome: Option<String>,
    error: Option<String>,
    after: Option<String>,
    result: Option<Box<RawValue>>,
    progress: Option<Value>,
}

/// Reads a line about this task.
///
/// # Errors
/// In words, when the line is about no task or about another one: then nobody knows
/// what the program is at.
pub(super) fn of_program(line: &[u8], id: &str) -> Result<Said, String> {
    let said: Value = match serde_json::from_slice(line) {
        Ok(said @ Value::Object(_)) => said,
        _ => {
            return Err(format!(
                "what it wrote is not an answer: {}; standard output is for answers alone, \
                 anything else goes to standard error",
                shown(line)
            ));
        }
    };
    let about = match said.get("id") {
        Some(Value::String(about)) => about.clone(),
        Some(about) => about.to_string(),
        None => "none".to_owned(),
    };
    if about != id {
        let about: String = about.chars().take(40).collect();
        return Err(format!("its answer is about task {about}, and it was given task {id}"));
    }
    Ok(serde_json::from_slice(line).map_or_else(
        |error| Said::Unclear(format!("the answer cannot be read: {error}: {}", shown(line))),
        |answer| meant(answer).unwrap_or_else(Said::Unclear),
    ))
}

fn meant(answer: AnswerIn) -> Result<Said, String> {
    let Some(outcome) = answer.outcome else {
        return match (&answer.progress, &answer.error, &answer.after, &answer.result) {
            (Some(said), None, None, None) => Ok(Said::Progress(far(said))),
            _ => Err("the answer has no 'outcome'".to_owned()),
        };
    };
    let how = match &*outcome {
        "done" => How::Done,
        "error" => How::Error,
        "retry" => How::Retry,
        "fail" => How::Fail,
        "release" => How::Release,
        other => {
            let other: String = other.chars().take(40).collect();
            return Err(format!(
                "the answer's outcome '{other}' is not one of done, error, retry, fail, release"
            ));
        }
    };
    let after = answer.after.map(|after| duration::parse(&after)).transpose();
    let after = after.map_err(|why| format!("the answer's 'after': {why}"))?;
    if how == How::Retry && after.is_none() {
        return Err("the answer's outcome is retry, which says when: \"after\":\"30s\"; error \
                    leaves that to the queue"
            .to_owned());
    }
    if after.is_some() && !matches!(how, How::Retry | How::Release) {
        return Err(format!("'after' goes with retry and release, not with {outcome}"));
    }
    if answer.result.is_some() && how != How::Done {
        return Err(format!("'result' goes with done, not with {outcome}"));
    }
    let result = answer.result.map(|result| result.get().to_owned());
    Ok(Said::Ended(Ended { how, error: answer.error, after, result }))
}

/// How far a program is: a text as in the file of one that does not stay, a number, or
/// an object of all parts. What is none of these is passed over: no task fails by it.
fn far(said: &Value) -> Option<Progress> {
    match said {
        Value::String(text) => text.parse().ok(),
        Value::Number(done) => Some(Progress::new(done.as_u64()?, None, "")),
        Value::Object(parts) => {
            let number = |name: &str| parts.get(name).and_then(Value::as_u64);
            let message = parts.get("message").and_then(Value::as_str);
            (number("done").is_some() || message.is_some()).then(|| {
                let (done, total) = (number("done").unwrap_or_default(), number("total"));
                Progress::new(done, total, message.unwrap_or_default())
            })
        }
        _ => None,
    }
}

/// A line as people are shown it.
fn shown(line: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(line.get(..line.len().min(4 * MOST)).unwrap_or_default());
    let text: String = text.trim().chars().take(MOST).collect();
    format!("'{text}'")
}

/// Bytes that are cut into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Up to where there is no end of a line.
    looked: usize,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line, without its end.
    ///
    /// # Errors
    /// When it is longer than lines may be.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, String> {
        let unseen = self.bytes.get(self.looked..).unwrap_or_default();
        let end = unseen.iter().position(|byte| *byte == b'\n').map(|at| self.looked + at);
        if end.unwrap_or(self.bytes.len()) > most() {
            return Err(format!("it wrote a line of more than {} bytes", most()));
        }
        let Some(end) = end else {
            self.looked = self.bytes.len();
            return Ok(None);
        };
        let line: Vec<u8> = self.bytes.drain(..=end).take(end).collect();
        self.looked = 0;
        Ok(Some(line.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_ready() {
        assert_eq!(is_ready(b" {\"ready\":true,\"gristmill\":1,\"more\":0} "), Ok(()));
        for (line, part) in [
            (&b"{\"gristmill\":2,\"ready\":true}"[..], "version 2"),
            (b"{\"gristmill\":1}", "its first line"),
            (b"Loading model", "'Loading model'"),
            (b"", "its first line"),
        ] {
            let why = is_ready(line).expect_err("not ready");
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn an_answer_names_its_task_and_an_outcome() {
        let read = |line: &str| of_program(line.as_bytes(), "7");
        let done = Ended { how: How::Done, error: None, after: None, result: None };
        assert_eq!(read(r#"{"id":"7","outcome":"done"}"#), Ok(Said::Ended(done)));
        let retry = Ended {
            how: How::Retry,
            error: Some("busy".to_owned()),
            after: Some(Duration::from_secs(30)),
            result: None,
        };
        let line = r#"{"result":{"a": 12345678901234567890123},"outcome":"done","id":"7"}"#;
        let Ok(Said::Ended(ended)) = read(line) else { panic!("{line} was not understood") };
        assert_eq!(ended.result.as_deref(), Some("{\"a\": 12345678901234567890123}"));
        let line = r#"{"id":7,"outcome":"retry","after":"30s","error":"busy"}"#;
        assert_eq!(read(line), Ok(Said::Ended(retry)));
        let far = |done, total, message: &str| Some(Progress::new(done, total, message));
        for (said, meant) in [
            (r#"{"done":3,"total":8,"message":"rows"}"#, far(3, Some(8), "rows")),
            (r#"{"message":"fetching"}"#, far(0, None, "fetching")),
            (r#""3/8 rows""#, far(3, Some(8), "rows")),
            ("3", far(3, None, "")),
            (r#"{"at":1}"#, None),
            (r#"{"done":-1}"#, None),
            ("[1]", None),
            ("0.5", None),
        ] {
            let line = format!(r#"{{"id":"7","progress":{said}}}"#);
            assert_eq!(read(&line), Ok(Said::Progress(meant)), "{said}");
        }
        for (line, part) in [
            ("hello", "standard error"),
            ("7", "is not an answer"),
            (r#"{"outcome":"done"}"#, "task none, and it was given task 7"),
            (r#"{"id":"8","outcome":"done"}"#, "task 8"),
        ] {
            let why = read(line).expect_err("a protocol error");
            assert!(why.contains(part), "{why}");
        }
        for (line, part) in [
            (r#"{"id":7}"#, "no 'outcome'"),
            (r#"{"id":7,"outcome":"ok"}"#, "'ok' is not one of"),
            (r#"{"id":7,"outcome":"retry"}"#, "says when"),
            (r#"{"id":7,"outcome":"done","after":"3s"}"#, "goes with"),
            (r#"{"id":7,"outcome":"error","result":1}"#, "'result' goes with done"),
            (r#"{"id":7,"outcome":"release","after":"3"}"#, "the unit is missing"),
            (r#"{"id":7,"outcome":"error","eror":"x"}"#, "eror"),
        ] {
            let Ok(Said::Unclear(why)) = read(line) else { panic!("{line} was understood") };
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn lines_come_whole_and_none_is_too_long() {
        let mut lines = Lines::default();
        lines.push(b"one\ntw");
        assert_eq!(lines.next(), Ok(Some(Bytes::from_static(b"one"))));
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"o\n\n");
        assert_eq!(lines.next(), Ok(Some(Bytes::from_static(b"two"))));
        assert_eq!(lines.next(), Ok(Some(Bytes::new())));
        lines.push(&vec![b'x'; most()]);
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"\n");
        assert_eq!(lines.next().map(|line| line.map(|line| line.len())), Ok(Some(most())));
        lines.push(&vec![b'x'; most() + 1]);
        assert!(lines.next().is_err());
    }
}
