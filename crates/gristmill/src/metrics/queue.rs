//! What the attempts of one queue came to in this process: how long tasks waited, how
//! long they ran, and how they ended. Counted by every processor at once, so in atomics.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_core::AttemptEnd;

use super::histogram::Histogram;

/// How attempts end, in the order in which they are told.
const ENDS: [AttemptEnd; 7] = [
    AttemptEnd::Done,
    AttemptEnd::Error,
    AttemptEnd::TimedOut,
    AttemptEnd::Retry,
    AttemptEnd::Fail,
    AttemptEnd::Release,
    AttemptEnd::Cancelled,
];

/// One queue's numbers.
#[derive(Debug, Default)]
pub(crate) struct QueueNumbers {
    waits: Histogram,
    runs: Histogram,
    ends: [AtomicU64; ENDS.len()],
}

impl QueueNumbers {
    /// A task started so long after it was due.
    pub(crate) fn waited(&self, wait: Duration) {
        self.waits.observe(wait);
    }

    /// A handler ran so long.
    pub(crate) fn ran(&self, took: Duration) {
        self.runs.observe(took);
    }

    /// So many attempts ended like this.
    pub(crate) fn ended(&self, end: AttemptEnd, attempts: u64) {
        let at = ENDS.iter().position(|known| *known == end);
        if let Some(count) = at.and_then(|at| self.ends.get(at)) {
            count.fetch_add(attempts, Ordering::Relaxed);
        }
    }

    pub(super) const fn waits(&self) -> &Histogram {
        &self.waits
    }

    pub(super) const fn runs(&self) -> &Histogram {
        &self.runs
    }

    pub(super) fn write_ends(&self, text: &mut String, name: &str, queue: &str) {
        for (end, count) in ENDS.iter().zip(&self.ends) {
            let (end, count) = (end.as_str(), count.load(Ordering::Relaxed));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{queue=\"{queue}\",outcome=\"{end}\"}} {count}");
        }
    }
}
