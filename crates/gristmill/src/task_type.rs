//! What makes a Rust type a task.

use gristmill_core::{Encoding, Payload, Why};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// How a type's values become payloads and back.
///
/// Whatever serde can write and read has JSON as its form. Code generated from
/// a contract has MessagePack, and reads both.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a payload",
    label = "has no form to be stored in",
    note = "write `#[derive(serde::Serialize, serde::Deserialize)]` above it (serde with its \
            feature `derive`), or implement `TaskPayload` by hand"
)]
pub trait TaskPayload: Sized {
    /// The value as a payload.
    ///
    /// # Errors
    /// When the value has no such form.
    fn to_payload(&self) -> Result<Payload, Error>;

    /// The value of a payload.
    ///
    /// # Errors
    /// When the payload is of another type.
    fn from_payload(payload: &Payload) -> Result<Self, Error>;
}

impl<T: Serialize + DeserializeOwned> TaskPayload for T {
    fn to_payload(&self) -> Result<Payload, Error> {
        serde_json::to_vec(self).map(Payload::json).map_err(|e| {
            Error::Encode(Why::from("the task cannot be written as JSON").caused_by(e))
        })
    }

    fn from_payload(payload: &Payload) -> Result<Self, Error> {
        if payload.encoding != Encoding::Json {
            let words = format!("the payload is {}, not JSON", payload.encoding);
            return Err(Error::Decode(words.into()));
        }
        serde_json::from_slice(&payload.bytes).map_err(|e| {
            let words = format!("the payload is not a {}", std::any::type_name::<T>());
            Error::Decode(Why::from(words).caused_by(e))
        })
    }
}

/// A type whose values are tasks of one queue.
///
/// The value itself is the payload (see [`TaskPayload`]). Everything else about
/// a put has a default and can be said at the put.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    label = "has no queue",
    note = "implement `gristmill::TaskType` for it: `const QUEUE` names its queue"
)]
pub trait TaskType: TaskPayload + Send + Sync + 'static {
    /// The queue its tasks go to.
    const QUEUE: &'static str;

    /// What this task is about, for deduplication and mutual exclusion.
    fn key(&self) -> Option<String> {
        None
    }
}
