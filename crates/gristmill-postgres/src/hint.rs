//! Where claims of this process left off, so that the next one does not walk
//! again over the dead entries in front.
//!
//! A hint is only that: what stands behind it is found by a look from the
//! front, which every claim makes that finds too little, and every so often
//! one that does not.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::{QueueName, Timestamp};

/// A look from the front is due after this long.
const EVERY: Duration = Duration::from_millis(100);
/// A look that took longer is dear: then it may take a twentieth of the time.
const DEAR: Duration = Duration::from_millis(10);

/// Where the last claim of a level ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) level: i16,
    pub(crate) run_at: Timestamp,
    pub(crate) id: i64,
}

#[derive(Debug, Default)]
struct Known {
    hint: Option<Hint>,
    /// When the front was last looked at, and what that took.
    looked: Duration,
    took: Duration,
}

/// The hints of all queues.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    queues: Mutex<HashMap<QueueName, Known>>,
}

impl Hints {
    /// Where to begin, and whether to look from the front if that gives too
    /// little.
    pub(crate) fn begin(&self, queue: &QueueName, now: Duration) -> (Option<Hint>, bool) {
        let queues = self.lock();
        let Some(known) = queues.get(queue) else {
            return (None, true);
        };
        let since = now.saturating_sub(known.looked);
        let affordable = since >= known.took.saturating_mul(20);
        if since >= EVERY && affordable {
            return (None, true);
        }
        (known.hint, known.took < DEAR || affordable)
    }

    /// A claim ended there. `swept` is what its look from the front took.
    pub(crate) fn ended(
        &self,
        queue: &QueueName,
        hint: Option<Hint>,
        swept: Option<Duration>,
        now: Duration,
    ) {
        let mut queues = self.lock();
        let known = queues.entry(queue.clone()).or_default();
        if hint.is_some() {
            known.hint = hint;
        }
        if let Some(took) = swept {
            known.looked = now;
            known.took = took;
        }
    }

    /// This process put something behind a hint.
    pub(crate) fn forget(&self, queue: &QueueName) {
        if let Some(known) = self.lock().get_mut(queue) {
            known.hint = None;
        }
    }

    /// This process may have put something behind any hint.
    pub(crate) fn forget_all(&self) {
        for known in self.lock().values_mut() {
            known.hint = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Known>> {
        // Plain numbers are valid whatever a panicking holder did.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn queue() -> QueueName {
        QueueName::new("q").expect("a name")
    }

    fn hint(id: i64) -> Option<Hint> {
        Some(Hint { level: 0, run_at: Timestamp::EPOCH, id })
    }

    #[test]
    fn the_front_is_looked_at_ten_times_a_second() {
        let hints = Hints::default();
        assert_eq!(hints.begin(&queue(), MS), (None, true));
        hints.ended(&queue(), hint(7), Some(MS), MS);
        assert_eq!(hints.begin(&queue(), 2 * MS), (hint(7), true));
        assert_eq!(hints.begin(&queue(), 102 * MS), (None, true));
        hints.forget(&queue());
        assert_eq!(hints.begin(&queue(), 2 * MS), (None, true));
    }

    #[test]
    fn a_dear_look_takes_a_twentieth_of_the_time_at_most() {
        let hints = Hints::default();
        hints.ended(&queue(), hint(7), Some(50 * MS), MS);
        assert_eq!(hints.begin(&queue(), 500 * MS), (hint(7), false));
        assert_eq!(hints.begin(&queue(), 1_002 * MS), (None, true));
    }
}
