//! A task's headers and history.

use std::collections::BTreeMap;

use gristmill_core::{Attempt, AttemptEnd, Headers, Result, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{corrupt, parse, text, worker_id};

/// Headers as they are stored: nothing when there are none.
///
/// # Errors
///
/// Invalid, when they cannot be said in JSON.
pub fn headers_text(headers: &Headers) -> Result<Option<String>> {
    if headers.is_empty() {
        return Ok(None);
    }
    text(headers).map(Some)
}

/// Headers as they are read back.
///
/// # Errors
///
/// Corrupt, when the text is none of headers.
pub fn headers(stored: Option<&str>) -> Result<Headers> {
    match stored {
        None => Ok(BTreeMap::new()),
        Some(stored) => parse("a task's headers", stored),
    }
}

/// An instant within a history: microseconds where a store writes it, the
/// database's own words where the database does.
pub trait Instant: DeserializeOwned {
    /// The instant that is meant.
    ///
    /// # Errors
    ///
    /// Corrupt, when it is none.
    fn instant(self) -> Result<Timestamp>;
}

impl Instant for i64 {
    fn instant(self) -> Result<Timestamp> {
        Ok(Timestamp::from_micros(self))
    }
}

impl Instant for String {
    fn instant(self) -> Result<Timestamp> {
        self.parse().map_err(|e| corrupt("a task's history", e))
    }
}

#[derive(Serialize, Deserialize)]
struct AttemptText<T> {
    worker: String,
    claimed_at: T,
    ended_at: T,
    end: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A task's history as it is read back; nothing stored is an empty one.
///
/// # Errors
///
/// Corrupt, when the text is none of a history.
pub fn history<T: Instant>(stored: Option<&str>) -> Result<Vec<Attempt>> {
    let Some(stored) = stored else {
        return Ok(Vec::new());
    };
    let attempts: Vec<AttemptText<T>> = parse("a task's history", stored)?;
    attempts
        .into_iter()
        .map(|attempt| {
            Ok(Attempt {
                worker: worker_id(&attempt.worker)?,
                claimed_at: attempt.claimed_at.instant()?,
                ended_at: attempt.ended_at.instant()?,
                end: attempt
                    .end
                    .parse::<AttemptEnd>()
                    .map_err(|e| corrupt("a task's history", e))?,
                error: attempt.error,
            })
        })
        .collect()
}

/// A history as a store writes it, with instants in microseconds.
///
/// # Errors
///
/// Invalid, when it cannot be said in JSON.
pub fn history_text(attempts: &[Attempt]) -> Result<String> {
    let attempts: Vec<AttemptText<i64>> = attempts
        .iter()
        .map(|attempt| AttemptText {
            worker: attempt.worker.to_string(),
            claimed_at: attempt.claimed_at.as_micros(),
            ended_at: attempt.ended_at.as_micros(),
            end: attempt.end.as_str().to_owned(),
            error: attempt.error.clone(),
        })
        .collect();
    text(&attempts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_stored_in_these_words() -> Result<()> {
        let stored = r#"[{"worker":"w","claimed_at":1,"ended_at":2,"end":"timed_out"},{"worker":"w","claimed_at":3,"ended_at":4,"end":"error","error":"no"}]"#;
        let attempts = history::<i64>(Some(stored))?;
        assert_eq!(history_text(&attempts)?, stored);
        let words = r#"[{"worker":"w","claimed_at":"1970-01-01T00:00:00.000003Z","ended_at":"1970-01-01T00:00:00.000004Z","end":"error","error":"no"}]"#;
        assert_eq!(history::<String>(Some(words))?, attempts.get(1..).unwrap_or_default());
        assert_eq!(history::<i64>(None), Ok(Vec::new()));
        Ok(())
    }

    #[test]
    fn headers_are_stored_by_name_and_none_as_nothing() -> Result<()> {
        let stored = r#"{"a":"1","b":"2"}"#;
        assert_eq!(headers_text(&headers(Some(stored))?)?.as_deref(), Some(stored));
        assert_eq!(headers_text(&headers(None)?), Ok(None));
        Ok(())
    }
}
