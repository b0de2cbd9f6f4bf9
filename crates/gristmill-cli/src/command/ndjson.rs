//! Tasks from lines, read on a thread of its own, a flush at a time: memory holds a few
//! flushes whatever the input's length, and a stream that is quiet holds nothing back.

use std::time::{Duration, Instant};

use gristmill::Payload;
use gristmill::port::{Headers, NewTask, Start};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::line_source::{LineSource, Next};
use crate::failure::Failure;
use gristmill_contract::duration;
use gristmill_contract::task_settings::Said;

/// Tasks a flush holds; more gain nothing.
const FLUSH_TASKS: usize = 1_000;
/// Bytes after which a flush ends early.
const FLUSH_BYTES: u64 = 16 << 20;
/// Longest line: a payload of the usual limit, escaped several times over.
const LINE_BYTES: usize = 8 << 20;
/// How long a stream may be quiet before what came of it is put.
const QUIET: Duration = Duration::from_millis(100);
/// And how long the first of a flush waits at most, in a stream that never is.
const WAITS: Duration = Duration::from_secs(1);

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A payload in JSON.
    Json,
    /// An object with the payload and its options.
    Envelope,
    /// A payload as it stands.
    Plain,
}

/// Tasks that are put in one step.
#[derive(Debug, Default)]
pub(crate) struct Flush {
    pub(crate) tasks: Vec<NewTask>,
    /// The number of each one's line.
    pub(crate) lines: Vec<u64>,
    /// Bytes read for it.
    pub(crate) bytes: u64,
}

impl Flush {
    /// Its first tasks, at most so many; the rest stays.
    pub(crate) fn split(&mut self, most: usize) -> Flush {
        let at = most.max(1).min(self.tasks.len());
        let (tasks, lines) = (self.tasks.split_off(at), self.lines.split_off(at));
        // What was read is told of with the last ones.
        let bytes = if tasks.is_empty() { 0 } else { self.bytes };
        let rest = Flush { tasks, lines, bytes };
        let first = std::mem::replace(self, rest);
        Flush { bytes: first.bytes - bytes, ..first }
    }
}

/// One line with everything that can be said about a task.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
    key: Option<String>,
    delay: Option<String>,
    at: Option<String>,
    priority: Option<i16>,
    group: Option<String>,
    source: Option<String>,
    id: Option<String>,
    #[serde(default)]
    headers: Headers,
    timeout: Option<Value>,
    max_attempts: Option<Value>,
    backoff: Option<Value>,
}

/// Reads tasks from lines; `defaults` is what the flags say about each.
pub(crate) fn read(
    source: LineSource,
    defaults: NewTask,
    form: Form,
) -> Result<mpsc::Receiver<Result<Flush, Failure>>, Failure> {
    // Two flushes ahead: the next is parsed while one is being committed.
    let (send, receive) = mpsc::channel(2);
    let mut reader = Reader { source, defaults, form, line: 0 };
    std::thread::Builder::new()
        .name("gristmill-lines".to_owned())
        .spawn(move || {
            loop {
                let flush = reader.flush();
                let last = flush.as_ref().map_or(true, |flush| flush.tasks.is_empty());
                // A closed channel: the put failed and nobody wants the rest.
                if send.blocking_send(flush).is_err() || last {
                    return;
                }
            }
        })
        .map_err(|error| Failure::io("a thread could not be started", &error))?;
    Ok(receive)
}

struct Reader {
    source: LineSource,
    defaults: NewTask,
    form: Form,
    line: u64,
}

impl Reader {
    /// The next tasks; none at the end of the input.
    fn flush(&mut self) -> Result<Flush, Failure> {
        let mut flush = Flush::default();
        let mut began: Option<Instant> = None;
        while flush.tasks.len() < FLUSH_TASKS && flush.bytes < FLUSH_BYTES {
            let left = began.map(|began| WAITS.saturating_sub(began.elapsed()));
            if left == Some(Duration::ZERO) && self.source.is_stream() {
                break;
            }
            let next = self.source.next(left.map(|left| left.min(QUIET)), LINE_BYTES);
            let line = match next {
                Ok(Next::Line(line)) => line,
                Ok(Next::Quiet | Next::End) => break,
                Err(error) => {
                    return Err(Failure::usage(format!("the input cannot be read: {error}")));
                }
            };
            self.line += 1;
            flush.bytes += line.len() as u64 + 1;
            if line.len() > LINE_BYTES {
                return Err(self.wrong(&format!("it is longer than {LINE_BYTES} bytes")));
            }
            let text = match self.form {
                // Blanks are part of a name; only the end of the line is not.
                Form::Plain => line.strip_suffix(b"\r").unwrap_or(&line),
                Form::Json | Form::Envelope => line.trim_ascii(),
            };
            if !text.is_empty() {
                flush.tasks.push(self.task(text)?);
                flush.lines.push(self.line);
                began.get_or_insert_with(Instant::now);
            }
        }
        Ok(flush)
    }

    fn task(&self, line: &[u8]) -> Result<NewTask, Failure> {
        let not_json = |error: serde_json::Error| {
            let said = error.to_string();
            let said = said.split(" at line 1").next().unwrap_or(&said);
            self.wrong(&format!("{said} at column {}", error.column()))
        };
        let payload = match self.form {
            Form::Envelope => None,
            Form::Plain => Some(Payload::raw(line.to_vec())),
            Form::Json => {
                serde_json::from_slice::<IgnoredAny>(line).map_err(|error| {
                    let wrong = not_json(error);
                    let hint = "say --lines if each line is a payload as it stands";
                    Failure { message: format!("{}; {hint}", wrong.message), ..wrong }
                })?;
                Some(Payload::json(line.to_vec()))
            }
        };
        if let Some(payload) = payload {
            return Ok(NewTask { payload, ..self.defaults.clone() });
        }
        let said: Envelope<'_> = serde_json::from_slice(line).map_err(not_json)?;
        let defaults = self.defaults.clone();
        let start = match (said.delay, said.at) {
            (Some(_), Some(_)) => return Err(self.wrong("it has both delay and at: choose one")),
            (Some(delay), None) => {
                Start::After(duration::parse(&delay).map_err(|why| self.wrong(&why))?)
            }
            (None, Some(at)) => Start::At(at.parse().map_err(|why| self.wrong(&format!("{why}")))?),
            (None, None) => defaults.start,
        };
        let mut settings = defaults.settings;
        for (name, value) in [
            ("timeout", &said.timeout),
            ("max_attempts", &said.max_attempts),
            ("backoff", &said.backoff),
        ] {
            let Some(value) = value else { continue };
            let mut own = Said::default();
            own.value(name, value).map_err(|wrong| self.wrong(&wrong.to_string()))?;
            let own = own.settings().map_err(|wrong| self.wrong(&wrong.to_string()))?;
            settings.say(&own);
        }
        Ok(NewTask {
            payload: Payload::json(said.payload.get().as_bytes().to_vec()),
            key: said.key,
            group: said.group.or(defaults.group),
            source: said.source.or(defaults.source),
            priority: said.priority.unwrap_or(defaults.priority),
            start,
            id: said.id,
            headers: said.headers,
            settings,
        })
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::usage(format!("line {} is not a task: {why}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn reader(text: &str, form: Form, defaults: NewTask) -> Reader {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("room");
        file.rewind().expect("a file");
        Reader { source: LineSource::file(file), defaults, form, line: 0 }
    }

    fn tasks(text: &str, form: Form) -> Result<Vec<NewTask>, Failure> {
        reader(text, form, NewTask::default()).flush().map(|flush| flush.tasks)
    }

    #[test]
    fn a_line_is_a_payload_as_it_stands() {
        let read = tasks("{\"a\": 1.50}\n\n  [2]\r\n3", Form::Json).expect("tasks");
        let payloads: Vec<&[u8]> = read.iter().map(|task| &task.payload.bytes[..]).collect();
        assert_eq!(payloads, [&b"{\"a\": 1.50}"[..], b"[2]", b"3"]);
    }

    #[test]
    fn a_plain_line_is_a_payload_with_its_blanks() {
        let read = tasks(" a b.txt\r\n\n42\n{broken", Form::Plain).expect("tasks");
        let payloads: Vec<&[u8]> = read.iter().map(|task| &task.payload.bytes[..]).collect();
        assert_eq!(payloads, [&b" a b.txt"[..], b"42", b"{broken"]);
        assert!(read.iter().all(|task| task.payload.encoding == gristmill::Encoding::Raw));
    }

    #[test]
    fn an_envelope_says_more() {
        let line = r#"{"payload":{"x":1},"key":"k","delay":"5s","priority":-3,"id":"i"}"#;
        let read = tasks(line, Form::Envelope).expect("tasks");
        let task = read.first().expect("one");
        assert_eq!(&task.payload.bytes[..], br#"{"x":1}"#);
        assert_eq!(task.start, Start::After(Duration::from_secs(5)));
        assert_eq!((task.priority, task.key.as_deref()), (-3, Some("k")));
    }

    #[test]
    fn an_envelope_says_more_of_its_settings_than_the_flags() {
        let mut defaults = NewTask::default();
        defaults.settings.set_max_attempts(Some(3));
        defaults.settings.set_timeout(Duration::from_secs(9));
        let line = r#"{"payload":1,"timeout":"5s"}"#;
        let read = reader(line, Form::Envelope, defaults).flush().expect("tasks").tasks;
        let own = &read.first().expect("one").settings;
        assert_eq!(own.timeout(), Some(Duration::from_secs(5)));
        assert_eq!(own.max_attempts(), Some(Some(3)));
    }

    #[test]
    fn a_broken_line_is_named() {
        for (text, form, part) in [
            ("1\n{\"a\":\n", Form::Json, "line 2 "),
            ("a.txt\n", Form::Json, "say --lines"),
            ("{}\n", Form::Envelope, "missing field `payload`"),
            ("{\"payload\":1,\"when\":2}\n", Form::Envelope, "unknown field `when`"),
            ("{\"payload\":1,\"delay\":\"5\"}\n", Form::Envelope, "unit is missing"),
            (
                "{\"payload\":1,\"delay\":\"5s\",\"at\":\"x\"}\n",
                Form::Envelope,
                "both delay and at",
            ),
            ("{\"payload\":1,\"at\":\"x\"}\n", Form::Envelope, "not a time"),
            ("{\"payload\":1,\"timeout\":\"0s\"}\n", Form::Envelope, "timeout is zero"),
            ("{\"payload\":1,\"max_attempts\":0}\n", Form::Envelope, "max_attempts is 0"),
        ] {
            let error = tasks(text, form).expect_err(text);
            assert!(error.message.contains(part), "{error}");
        }
    }
}
