//! What of a page of tasks no store looks for by itself: each task that a store found is
//! looked at once more, for a while.

use std::time::Duration;

use gristmill::{Task, Timestamp, error_shape};

use crate::known::Queues;

/// What of a page no store looks for by itself, and for how long it is looked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Narrow<'a> {
    pub(crate) since: Option<Timestamp>,
    /// The shape of the error.
    pub(crate) shape: Option<&'a str>,
    /// What its payload has in it, as it is stored or as pages show it.
    pub(crate) payload: Option<&'a str>,
    pub(crate) looks: Duration,
}

impl Narrow<'_> {
    /// Whether each task that a store found has to be looked at once more.
    pub(crate) const fn looks_closer(&self) -> bool {
        self.shape.is_some() || self.payload.is_some()
    }

    pub(crate) fn fits(&self, task: &Task, queues: &Queues) -> bool {
        let shaped = |shape: &str| task.error.as_deref().is_some_and(|e| error_shape(e) == shape);
        let holds = |part: &str| {
            let stored = holds_bytes(&task.payload.bytes, part.as_bytes());
            let shown = || queues.as_json(&task.queue, &task.payload);
            stored || shown().is_some_and(|json| json.contains(part))
        };
        self.shape.is_none_or(shaped) && self.payload.is_none_or(holds)
    }
}

/// Whether some bytes stand in others.
fn holds_bytes(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}
