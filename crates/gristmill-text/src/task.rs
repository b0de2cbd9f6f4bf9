//! A task's headers and history. Both are read leniently: whatever stands there
//! is this one task's affair, and must not hide the others of its page.

use gristmill_core::{Attempt, AttemptEnd, Headers, Result, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{corrupt, text, worker_id};

/// What could be read, and what is wrong with the rest, as a part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable<T> {
    /// What could be read.
    pub value: T,
    /// What could not, if anything.
    pub fault: Option<String>,
}

impl<T> Readable<T> {
    const fn whole(value: T) -> Self {
        Readable { value, fault: None }
    }
}

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

/// Headers as they are read back: those that are texts.
#[must_use]
pub fn headers(stored: Option<&str>) -> Readable<Headers> {
    let Some(stored) = stored else {
        return Readable::whole(Headers::new());
    };
    match serde_json::from_str(stored) {
        // What a client sends that means to say nothing.
        Ok(Value::Null) => Readable::whole(Headers::new()),
        Ok(Value::Object(said)) => {
            let mut read = Readable::whole(Headers::new());
            for (name, value) in said {
                match value {
                    Value::String(text) => {
                        read.value.insert(name, text);
                    }
                    _ => {
                        let name: String = name.chars().take(80).collect();
                        read.fault.get_or_insert_with(|| format!("its header '{name}' is no text"));
                    }
                }
            }
            read
        }
        _ => Readable {
            value: Headers::new(),
            fault: Some("its headers are no object of texts".to_owned()),
        },
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

/// A task's history as it is read back: the attempts that can be. Nothing
/// stored is an empty one.
#[must_use]
pub fn history<T: Instant>(stored: Option<&str>) -> Readable<Vec<Attempt>> {
    let mut read = Readable::whole(Vec::new());
    let Some(stored) = stored else {
        return read;
    };
    // The usual case, without a detour over values.
    if let Ok(attempts) = serde_json::from_str::<Vec<AttemptText<T>>>(stored)
        && let Ok(attempts) = attempts.into_iter().map(attempt).collect()
    {
        read.value = attempts;
        return read;
    }
    let Ok(entries) = serde_json::from_str::<Vec<Value>>(stored) else {
        read.fault = Some("its history is no list".to_owned());
        return read;
    };
    for (nth, entry) in (1..).zip(entries) {
        let said = serde_json::from_value::<AttemptText<T>>(entry);
        let said = said.map_err(|e| corrupt("a task's history", e)).and_then(attempt);
        match said {
            Ok(attempt) => read.value.push(attempt),
            Err(why) => {
                read.fault.get_or_insert_with(|| {
                    format!("attempt {nth} of its history cannot be read: {why}")
                });
            }
        }
    }
    read
}

fn attempt<T: Instant>(stored: AttemptText<T>) -> Result<Attempt> {
    Ok(Attempt {
        worker: worker_id(&stored.worker),
        claimed_at: stored.claimed_at.instant()?,
        ended_at: stored.ended_at.instant()?,
        end: stored.end.parse::<AttemptEnd>().map_err(|e| corrupt("a task's history", e))?,
        error: stored.error,
    })
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
        let attempts = history::<i64>(Some(stored)).value;
        assert_eq!(history_text(&attempts)?, stored);
        let words = r#"[{"worker":"w","claimed_at":"1970-01-01T00:00:00.000003Z","ended_at":"1970-01-01T00:00:00.000004Z","end":"error","error":"no"}]"#;
        let words = history::<String>(Some(words));
        assert_eq!(words, Readable::whole(attempts.get(1..).unwrap_or_default().to_vec()));
        assert_eq!(history::<i64>(None), Readable::whole(Vec::new()));
        Ok(())
    }

    #[test]
    fn headers_are_stored_by_name_and_none_as_nothing() -> Result<()> {
        let stored = r#"{"a":"1","b":"2"}"#;
        assert_eq!(headers_text(&headers(Some(stored)).value)?.as_deref(), Some(stored));
        for none in [None, Some("null")] {
            assert_eq!(headers(none), Readable::whole(Headers::new()));
        }
        Ok(())
    }

    #[test]
    fn what_cannot_be_read_leaves_the_rest() {
        let read = headers(Some(r#"{"a":"1","b":2,"c":null}"#));
        let a: Headers = [("a".to_owned(), "1".to_owned())].into();
        assert_eq!((read.value, read.fault.as_deref()), (a, Some("its header 'b' is no text")));
        for stored in ["[]", "7", "no json", ""] {
            let fault = headers(Some(stored)).fault;
            assert_eq!(fault.as_deref(), Some("its headers are no object of texts"), "{stored}");
        }
        let stored = r#"[{"worker":"@ any text","claimed_at":1,"ended_at":2,"end":"error"},
            {"worker":"w","claimed_at":1,"ended_at":2,"end":"vanished"},7]"#;
        let read = history::<i64>(Some(stored));
        let workers: Vec<&str> = read.value.iter().map(|one| one.worker.as_str()).collect();
        assert_eq!(workers, ["@ any text"]);
        let why = "attempt 2 of its history cannot be read: ";
        assert!(read.fault.as_ref().is_some_and(|fault| fault.starts_with(why)), "{read:?}");
        for stored in ["{}", "null", "no json"] {
            let fault = history::<i64>(Some(stored)).fault;
            assert_eq!(fault.as_deref(), Some("its history is no list"), "{stored}");
        }
    }
}
