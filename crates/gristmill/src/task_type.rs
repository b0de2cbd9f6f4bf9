//! What makes a Rust type a task.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose values are tasks of one queue.
///
/// The value itself is the payload, as JSON. Everything else about a put has a
/// default and can be said at the put.
pub trait TaskType: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The queue its tasks go to.
    const QUEUE: &'static str;

    /// What this task is about, for deduplication and mutual exclusion.
    fn key(&self) -> Option<String> {
        None
    }
}
