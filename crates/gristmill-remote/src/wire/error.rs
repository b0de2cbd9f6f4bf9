//! A store's errors: the same kind at the other end, and the words where they may be told.

use gristmill_core::{StoreError, Why};
use serde_json::Value;

use super::{Fault, Read, Wire};

/// What is said in place of words that may name files, servers or what stands in a row.
pub const HIDDEN: &str = "the service's log says why";

/// The error as it may be told to somebody elsewhere.
#[must_use]
pub fn concealed(error: StoreError) -> StoreError {
    match error {
        StoreError::NotAStore(_) => StoreError::not_a_store(HIDDEN),
        StoreError::Permission(_) => StoreError::permission(HIDDEN),
        StoreError::Fault(_) => StoreError::fault(HIDDEN),
        StoreError::Corrupt(_) => StoreError::corrupt(HIDDEN),
        other => other,
    }
}

/// With what it was caused by.
impl Wire for Why {
    fn write(&self) -> Value {
        Value::String(format!("{self:#}"))
    }

    fn read(value: Value) -> Read<Self> {
        String::read(value).map(Why::from)
    }
}

choice!(StoreError {
    "busy" = Busy(why),
    "held" = Held(why),
    "unavailable" = Unavailable(why),
    "unknown" = Unknown(why),
    "disk_full" = DiskFull(why),
    "invalid" = Invalid(why),
    "unknown_queue" = UnknownQueue { name, suggestion },
    "not_a_store" = NotAStore(why),
    "newer_schema" = NewerSchema { found, known },
    "permission" = Permission(why),
    "fault" = Fault(why),
    "corrupt" = Corrupt(why),
    "not_supported" = NotSupported(why),
    "closed" = Closed,
} else other => StoreError::fault(other.whole()));

impl From<Fault> for StoreError {
    /// What came back is not what was asked for: of no use, and not known to be undone.
    fn from(fault: Fault) -> Self {
        StoreError::unknown(format!("the answer cannot be read: {fault}"))
    }
}
