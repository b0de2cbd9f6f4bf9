//! Single values as they are stored, and what is said of one that cannot be
//! read back.

use std::fmt::Display;
use std::time::Duration;

use gristmill_core::{QueueName, Result, StoreError, WorkerId};
use serde::{Deserialize, Serialize};

/// A stored value that cannot be what was written.
pub fn corrupt(what: &str, why: impl Display) -> StoreError {
    StoreError::corrupt(format!("{what}: {why}"))
}

/// JSON text of a value.
///
/// # Errors
///
/// Invalid, when the value cannot be said in JSON.
pub fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| StoreError::invalid("it cannot be said in JSON").caused_by(e))
}

/// A value from its JSON text; `what` names it in the error.
///
/// # Errors
///
/// Corrupt, when the text is not such a value.
pub fn parse<'a, T: Deserialize<'a>>(what: &str, stored: &'a str) -> Result<T> {
    serde_json::from_str(stored).map_err(|e| StoreError::corrupt(what).caused_by(e))
}

/// A duration as it is stored: microseconds.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A stored queue name.
///
/// # Errors
///
/// Corrupt, when it is none.
pub fn queue_name(stored: &str) -> Result<QueueName> {
    QueueName::new(stored).map_err(|e| corrupt("a queue's name", e))
}

/// A stored worker id: whatever somebody called himself.
#[must_use]
pub fn worker_id(stored: &str) -> WorkerId {
    WorkerId::stored(stored)
}
