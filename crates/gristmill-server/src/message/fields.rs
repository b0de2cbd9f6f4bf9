//! Fields that several messages have: durations, ids, tokens, who acts.

use std::time::Duration;

use gristmill::port::{Start, Token, WorkerId};
use gristmill::{QueueName, TaskId, Timestamp};
use gristmill_contract::duration;
use serde::{Deserialize, Deserializer};

use crate::access::Caller;
use crate::problem::{Answer, Problem};

/// A duration like `5s`.
pub(crate) fn span(field: &str, text: &str) -> Answer<Duration> {
    duration::parse(text).map_err(|why| Problem::field(field, why))
}

/// When something runs, said as a delay or as a time.
pub(crate) fn start(delay: Option<&str>, run_at: Option<&str>) -> Answer<Start> {
    match (delay, run_at) {
        (Some(_), Some(_)) => {
            Err(Problem::field("run_at", "'delay' and 'run_at' exclude each other"))
        }
        (Some(delay), None) => Ok(Start::After(span("delay", delay)?)),
        (None, Some(at)) => {
            let at: Result<Timestamp, _> = at.parse();
            Ok(Start::At(at.map_err(|error| Problem::field("run_at", error.to_string()))?))
        }
        (None, None) => Ok(Start::Now),
    }
}

/// A queue's name.
pub(crate) fn queue(field: &str, text: &str) -> Answer<QueueName> {
    QueueName::new(text).map_err(|error| Problem::field(field, error.to_string()))
}

/// A worker's id.
pub(crate) fn worker(field: &str, text: &str) -> Answer<WorkerId> {
    WorkerId::new(text).map_err(|error| Problem::field(field, error.to_string()))
}

/// A task's id: what an answer gave, as text.
pub(crate) fn id(field: &str, text: &str) -> Answer<TaskId> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Problem::field(field, format!("'{shown}' is not a task's id: send it as it was given"))
    })
}

/// A claim's token.
pub(crate) fn token(field: &str, text: &str) -> Answer<Token> {
    text.parse().map_err(|_| {
        // Not quoted: it may be a real one with a slip in it.
        Problem::field(field, "a token is 32 hexadecimal digits: 128 random bits")
    })
}

/// Who acts: as a person or program says, else by the token.
pub(crate) fn by(caller: &Caller, said: Option<String>) -> Answer<String> {
    text("by", caller.acts_as(said).unwrap_or_else(|| "http".to_owned()), 512)
}

/// A text that stores keep: not empty, not endless, no NUL.
pub(crate) fn text(field: &str, text: String, limit: usize) -> Answer<String> {
    let why = if text.is_empty() {
        "is empty: leave it out or give it a value".to_owned()
    } else if text.len() > limit {
        format!("has {} bytes and {limit} are allowed", text.len())
    } else if text.contains('\0') {
        "holds a NUL".to_owned()
    } else {
        return Ok(text);
    };
    Err(Problem::field(field, format!("{field} {why}")))
}

/// A number that some clients send as text in a query.
pub(crate) fn from_text<'de, D, T>(reader: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr,
{
    let text = String::deserialize(reader)?;
    text.parse().map(Some).map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        serde::de::Error::custom(format!("'{shown}' is not a whole number that fits here"))
    })
}

/// A whole number, also where it is written like 5.0: JSON knows no other kind.
pub(crate) fn whole<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(reader)? else { return Ok(None) };
    let exact = number.as_f64().filter(|value| value.fract() == 0.0 && (0.0..1e9).contains(value));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at above")]
    let float = exact.map(|value| value as usize);
    let found = number.as_u64().and_then(|value| usize::try_from(value).ok()).or(float);
    let wrong = || serde::de::Error::custom(format!("{number} is not a whole number that fits"));
    found.map(Some).ok_or_else(wrong)
}

/// How many of something there are, for people to look at: a whole number of any size and
/// however it is written. Who counts further than can be told must not lose a lease by it.
pub(crate) fn counted<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(reader)? else { return Ok(None) };
    let exact = number.as_f64().filter(|value| value.fract() == 0.0 && *value >= 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no less than 0; the largest is as large as can be"
    )]
    let float = exact.map(|value| value as u64);
    let wrong = || serde::de::Error::custom(format!("{number} is not a whole number from 0"));
    number.as_u64().or(float).map(Some).ok_or_else(wrong)
}

/// Milliseconds, for JSON.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
