//! A task's file: lines a person can read, an empty line, the payload's bytes as
//! they were given, and behind them what its handler kept for the next attempt.
//!
//! The lines end with a checksum of themselves, and one of them is the
//! payload's. So a torn or changed file is noticed, and a restart needs to
//! read only the beginning of each.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};

use gristmill_core::memory::TaskRecord;
use gristmill_core::{
    Attempt, CheckpointMark, Encoding, Headers, Kept, Note, Payload, QueueName, State, Task,
    TaskId, TaskSettings, Timestamp, Token, Unique, WorkerId,
};
use gristmill_text::{task_settings, task_settings_value};
use sha2::{Digest, Sha256};

/// The first line of every task's file.
const FIRST: &str = "gristmill task 1";

/// A file's lines, read back.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) record: TaskRecord,
    /// The lines' length, with the empty one: where the payload begins.
    pub(crate) header_len: usize,
    /// The payload's checksum.
    pub(crate) sha256: String,
}

/// The lines of a task's file.
pub(crate) fn header(record: &TaskRecord, payload: &[u8]) -> String {
    let mut text = lines(record, true);
    let _ = writeln!(text, "bytes: {}", payload.len());
    let _ = writeln!(text, "sha256: {}", hex(&Sha256::digest(payload)));
    let sum = sum(&text);
    let _ = writeln!(text, "sum: {sum}\n");
    text
}

/// What tells whether a file has to be written anew: everything in its lines
/// that a claim leaves as it is.
pub(crate) fn digest(record: &TaskRecord) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(lines(record, false).as_bytes());
    hasher.write_usize(record.payload_len);
    hasher.finish()
}

fn lines(record: &TaskRecord, all: bool) -> String {
    let TaskRecord { task, checkpoint, in_flight, started_releases, settled, .. } = record;
    let mut text = String::with_capacity(512);
    let _ = writeln!(text, "{FIRST}\nid: {}\nqueue: {}", task.id, task.queue);
    for (name, value) in [("key", &task.key), ("group", &task.group), ("source", &task.source)] {
        line(&mut text, name, value.as_deref());
    }
    let _ = writeln!(text, "priority: {}\nencoding: {}", task.priority, task.payload.encoding);
    let _ = writeln!(text, "unique: {}\ncreated_at: {}", task.unique, task.created_at);
    let _ = writeln!(text, "run_at: {}", task.run_at);
    time(&mut text, "prev_run_at", task.prev_run_at);
    let _ = writeln!(text, "attempts: {}\nclaims: {}", task.attempts, task.claims);
    number(&mut text, "expiries", task.expiries);
    number(&mut text, "started_releases", *started_releases);
    if all {
        time(&mut text, "claimed_at", task.claimed_at);
        number(&mut text, "in_flight", u32::from(*in_flight));
    }
    number(&mut text, "cancel_requested", u32::from(task.cancel_requested));
    time(&mut text, "failed_at", task.failed_at);
    line(&mut text, "error", task.error.as_deref());
    for Attempt { worker, claimed_at, ended_at, end, error } in &task.history {
        text.push_str("attempt: ");
        word(&mut text, worker.as_str());
        let _ = write!(text, " {claimed_at} {ended_at} {}", end.as_str());
        if let Some(error) = error {
            text.push(' ');
            escape(&mut text, error);
        }
        text.push('\n');
    }
    if let Some(Note { text: note, by }) = &task.note {
        line(&mut text, "note", Some(note));
        line(&mut text, "note_by", Some(by));
    }
    line(&mut text, "resolved_by", task.resolved_by.as_deref());
    time(&mut text, "resolved_at", task.resolved_at);
    if let Some(token) = settled {
        let _ = writeln!(text, "settled: {token}");
    }
    if let Some(CheckpointMark { bytes, digest }) = checkpoint {
        let _ = writeln!(text, "checkpoint: {bytes} {}", hex(digest));
    }
    if let Some(own) = task_settings_value(&task.settings) {
        line(&mut text, "settings", Some(&own.to_string()));
    }
    for (name, value) in &task.headers {
        let mut escaped = String::new();
        escape(&mut escaped, name);
        let _ = write!(text, "header: {}=", escaped.replace('=', "\\u{3d}"));
        escape(&mut text, value);
        text.push('\n');
    }
    text
}

fn line(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = write!(text, "{name}: ");
        escape(text, value);
        text.push('\n');
    }
}

fn time(text: &mut String, name: &str, value: Option<Timestamp>) {
    if let Some(value) = value {
        let _ = writeln!(text, "{name}: {value}");
    }
}

fn number(text: &mut String, name: &str, value: u32) {
    if value != 0 {
        let _ = writeln!(text, "{name}: {value}");
    }
}

/// One line of any text: what would end or hide it is written as `\n`, `\r`,
/// `\\` or `\u{..}`.
fn escape(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(text, "\\u{{{:x}}}", u32::from(c));
            }
            c => text.push(c),
        }
    }
}

/// A text as one word of a line; `-` for none. Whoever ran a task in another
/// store may have any name.
fn word(text: &mut String, value: &str) {
    let mut escaped = String::new();
    escape(&mut escaped, value);
    match escaped.as_str() {
        "" => text.push('-'),
        "-" => text.push_str("\\u{2d}"),
        some => text.push_str(&some.replace(' ', "\\u{20}")),
    }
}

fn unescape(value: &str) -> Option<String> {
    if !value.contains('\\') {
        return Some(value.to_owned());
    }
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next()? {
            '\\' => text.push('\\'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            'u' => {
                let code: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                text.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
            }
            _ => return None,
        }
    }
    Some(text)
}

/// The beginning of a SHA-256, for what only has to be found damaged.
pub(crate) fn sum(bytes: impl AsRef<[u8]>) -> String {
    let full = Sha256::digest(bytes.as_ref());
    hex(full.get(..8).unwrap_or_default())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of a text that [`hex`] made.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Where the lines end, if the bytes reach that far.
pub(crate) fn header_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|two| two == b"\n\n").map(|at| at + 2)
}

/// Reads a file's lines back; the folder says the state.
///
/// # Errors
/// What is wrong with them, in words.
pub(crate) fn parse(bytes: &[u8], state: State) -> Result<Parsed, String> {
    let header_len = header_end(bytes).ok_or("it has no end of the header")?;
    let text = bytes.get(..header_len).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| "the header is not text")?;
    let (body, said) = text
        .strip_suffix("\n\n")
        .and_then(|text| text.rsplit_once("\nsum: "))
        .ok_or("the header has no checksum")?;
    let body = text.get(..=body.len()).unwrap_or_default();
    if sum(body) != said {
        return Err("the header does not fit its checksum".to_owned());
    }
    let mut lines = body.lines();
    if lines.next() != Some(FIRST) {
        return Err("it is not a task's file".to_owned());
    }
    let mut fields = Fields::default();
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or_else(|| format!("not a line: {line}"))?;
        fields.read(name, value).ok_or_else(|| format!("'{name}' cannot be read"))?;
    }
    let (record, sha256) = fields.record(state).ok_or("a line is missing")?;
    Ok(Parsed { record, header_len, sha256 })
}

/// The payload of a whole file, if it is as it was put.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn payload(bytes: &bytes::Bytes, parsed: &Parsed) -> Result<bytes::Bytes, String> {
    let (body, wanted) = (bytes.slice(parsed.header_len.min(bytes.len())..), parsed.body_len());
    if body.len() != wanted {
        return Err(format!(
            "it has {} bytes behind its lines and should have {wanted}",
            body.len()
        ));
    }
    let payload = body.slice(..parsed.record.payload_len);
    if hex(&Sha256::digest(&payload)) != parsed.sha256 {
        return Err("the payload does not fit its checksum".to_owned());
    }
    Ok(payload)
}

/// What the task of a whole file keeps, or what is wrong with it, in words.
pub(crate) fn kept(bytes: &[u8], parsed: &Parsed) -> Result<Option<Kept>, String> {
    let Some(mark) = parsed.record.checkpoint else { return Ok(None) };
    let from = parsed.header_len + parsed.record.payload_len;
    let kept = bytes.get(from..).unwrap_or_default();
    if CheckpointMark::of(kept) != mark {
        return Err("the checkpoint does not fit its checksum".to_owned());
    }
    Ok(Some(Kept::from(kept.to_vec())))
}

impl Parsed {
    /// How much stands behind the lines.
    pub(crate) fn body_len(&self) -> usize {
        self.record.payload_len + self.record.checkpoint.map_or(0, |mark| mark.bytes)
    }
}

/// The values of a file's lines as they come.
#[derive(Default)]
struct Fields {
    id: Option<TaskId>,
    queue: Option<QueueName>,
    texts: [Option<String>; 7],
    priority: i16,
    encoding: Option<Encoding>,
    unique: Option<Unique>,
    times: [Option<Timestamp>; 6],
    numbers: [u32; 6],
    history: Vec<Attempt>,
    settled: Option<Token>,
    headers: Headers,
    settings: TaskSettings,
    checkpoint: Option<CheckpointMark>,
    bytes: Option<usize>,
    sha256: Option<String>,
}

const TEXTS: [&str; 7] = ["key", "group", "source", "error", "note", "note_by", "resolved_by"];
const TIMES: [&str; 6] =
    ["created_at", "run_at", "prev_run_at", "claimed_at", "failed_at", "resolved_at"];
const NUMBERS: [&str; 6] =
    ["attempts", "claims", "expiries", "started_releases", "in_flight", "cancel_requested"];

impl Fields {
    fn read(&mut self, name: &str, value: &str) -> Option<()> {
        if let Some(at) = TEXTS.iter().position(|known| *known == name) {
            *self.texts.get_mut(at)? = Some(unescape(value)?);
            return Some(());
        }
        if let Some(at) = TIMES.iter().position(|known| *known == name) {
            *self.times.get_mut(at)? = Some(value.parse().ok()?);
            return Some(());
        }
        if let Some(at) = NUMBERS.iter().position(|known| *known == name) {
            *self.numbers.get_mut(at)? = value.parse().ok()?;
            return Some(());
        }
        match name {
            "id" => self.id = Some(value.parse().ok()?),
            "queue" => self.queue = Some(QueueName::new(value).ok()?),
            "priority" => self.priority = value.parse().ok()?,
            "encoding" => self.encoding = Some(value.parse().ok()?),
            "unique" => self.unique = Some(value.parse().ok()?),
            "attempt" => self.history.push(attempt(value)?),
            "settled" => self.settled = Some(value.parse().ok()?),
            "header" => {
                let (name, value) = value.split_once('=')?;
                self.headers.insert(unescape(name)?, unescape(value)?);
            }
            "settings" => self.settings = settings(&unescape(value)?)?,
            "checkpoint" => self.checkpoint = Some(mark(value)?),
            "bytes" => self.bytes = Some(value.parse().ok()?),
            "sha256" => self.sha256 = Some(value.to_owned()),
            _ => return None,
        }
        Some(())
    }

    fn record(self, state: State) -> Option<(TaskRecord, String)> {
        let [key, group, source, error, note, note_by, resolved_by] = self.texts;
        let [created_at, run_at, prev_run_at, claimed_at, failed_at, resolved_at] = self.times;
        let [attempts, claims, expiries, started_releases, in_flight, cancel] = self.numbers;
        let note = note.map(|text| Note { text, by: note_by.unwrap_or_default() });
        let payload = Payload { bytes: bytes::Bytes::new(), encoding: self.encoding? };
        let mut task = Task::new(self.id?, self.queue?, payload, created_at?);
        task.key = key;
        task.group = group;
        task.source = source;
        task.priority = self.priority;
        task.state = state;
        task.unique = self.unique?;
        task.attempts = attempts;
        task.claims = claims;
        task.expiries = expiries;
        task.run_at = run_at?;
        task.prev_run_at = prev_run_at;
        task.claimed_at = claimed_at;
        task.cancel_requested = cancel != 0;
        task.failed_at = failed_at;
        task.error = error;
        task.history = self.history;
        task.note = note;
        task.resolved_by = resolved_by;
        task.resolved_at = resolved_at;
        task.headers = self.headers;
        task.settings = self.settings;
        let record = TaskRecord {
            task,
            payload_len: self.bytes?,
            checkpoint: self.checkpoint,
            in_flight: in_flight != 0,
            started_releases,
            settled: self.settled,
        };
        Some((record, self.sha256?))
    }
}

/// How much the task keeps, and what tells it from anything else.
fn mark(value: &str) -> Option<CheckpointMark> {
    let (bytes, said) = value.split_once(' ')?;
    let mut digest = [0; 16];
    for (nth, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(said.get(nth * 2..nth * 2 + 2)?, 16).ok()?;
    }
    Some(CheckpointMark { bytes: bytes.parse().ok()?, digest })
}

/// A task's own settings, whole or not at all: the file's checksum says that nobody
/// but us wrote them.
fn settings(value: &str) -> Option<TaskSettings> {
    let read = task_settings(Some(value));
    read.fault.is_none().then_some(read.value)
}

fn attempt(value: &str) -> Option<Attempt> {
    let mut words = value.splitn(5, ' ');
    Some(Attempt {
        worker: match words.next()? {
            "-" => WorkerId::stored(""),
            name => WorkerId::stored(&unescape(name)?),
        },
        claimed_at: words.next()?.parse().ok()?,
        ended_at: words.next()?.parse().ok()?,
        end: words.next()?.parse().ok()?,
        error: match words.next() {
            Some(error) => Some(unescape(error)?),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(texts: [Option<String>; 4], name: String, payload_len: usize) -> TaskRecord {
        let at = Timestamp::from_micros(1_767_225_600_000_001);
        let [key, group, error, note] = texts;
        let attempt = Attempt {
            worker: WorkerId::stored(group.as_deref().unwrap_or("w")),
            claimed_at: at,
            ended_at: at,
            end: gristmill_core::AttemptEnd::TimedOut,
            error: error.clone(),
        };
        let mut own = TaskSettings::default();
        if key.is_some() {
            own.set_max_attempts(None);
            own.set_timeout(std::time::Duration::from_millis(1));
        }
        let queue = QueueName::new("a.b-c_d").unwrap_or_else(|_| unreachable!());
        let mut task = Task::new(TaskId(7), queue, Payload::raw(""), at);
        task.key = key;
        task.group = group;
        task.source = payload_len.is_multiple_of(2).then(|| "s".to_owned());
        task.priority = -3;
        task.unique = Unique::Active;
        task.attempts = 2;
        task.claims = 9;
        task.expiries = 1;
        task.run_at = Timestamp::MAX;
        task.prev_run_at = Some(at);
        task.claimed_at = Some(at);
        task.cancel_requested = true;
        task.error = error;
        task.history = vec![attempt.clone(), Attempt { error: None, ..attempt }];
        task.note = note.map(|text| Note { text, by: "ada".to_owned() });
        task.resolved_at = Some(at);
        task.headers = [(name, "v\n=".to_owned())].into();
        task.settings = own;
        let settled = Some(Token::from_bytes([7; 16]));
        let checkpoint = task.source.as_deref().map(|_| CheckpointMark::of(b"kept"));
        TaskRecord { task, payload_len, checkpoint, in_flight: true, started_releases: 4, settled }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(
            texts in proptest::array::uniform4(proptest::option::of(".{0,20}|[\\\\\n\r\0u{}=: ]{0,9}")),
            name in "[=:\\\\\n a]{1,5}",
            payload in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let record = record(texts, name, payload.len());
            let mut bytes = header(&record, &payload).into_bytes();
            bytes.extend_from_slice(&payload);
            let wanted = record.checkpoint.map(|_| Kept::from(b"kept".to_vec()));
            bytes.extend_from_slice(wanted.as_deref().unwrap_or_default());
            let bytes = bytes::Bytes::from(bytes);
            let parsed = parse(&bytes, State::Pending).map_err(TestCaseError::fail)?;
            prop_assert_eq!(super::payload(&bytes, &parsed), Ok(payload.into()));
            prop_assert_eq!(super::kept(&bytes, &parsed), Ok(wanted));
            prop_assert_eq!(digest(&parsed.record), digest(&record));
            prop_assert_eq!(parsed.record, record);
        }

        #[test]
        fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let record = record([None, None, None, None], "n".to_owned(), 5);
            let mut bytes = header(&record, b"hello").into_bytes();
            bytes.extend_from_slice(b"hello");
            let at = at.index(bytes.len());
            let before = std::mem::replace(bytes.get_mut(at).ok_or(TestCaseError::reject("at"))?, to);
            let bytes = bytes::Bytes::from(bytes);
            let read = parse(&bytes, State::Pending).and_then(|parsed| {
                super::payload(&bytes, &parsed)
            });
            prop_assert_eq!(read.is_ok(), before == to, "byte {}", at);
        }
    }
}
