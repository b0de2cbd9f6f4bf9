//! Waiting for a store that does not answer: longer each time, with jitter, so
//! that a hundred workers do not come back in one moment.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use gristmill_core::policy::backoff;
use gristmill_core::{Backoff, StoreError, TaskId, WorkerId};

use crate::timer::Timer;

const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(5), jitter: true };
/// Not at once, wherever the jitter falls.
const LEAST: Duration = Duration::from_millis(50);

/// Tries in vain so far, and where within the jitter their waits fall.
#[derive(Debug)]
pub(crate) struct Pause {
    /// Of who waits and never of the process: in containers each of those has
    /// the number 1.
    seed: i64,
    failures: u32,
}

impl Pause {
    /// For a part of a worker.
    pub(crate) fn of(worker: &WorkerId, part: usize) -> Self {
        let mut hasher = DefaultHasher::new();
        (worker.as_str(), part).hash(&mut hasher);
        Pause { seed: hasher.finish().cast_signed(), failures: 0 }
    }

    /// For somebody without a name.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn random() -> Result<Self, StoreError> {
        Ok(Self::of(&WorkerId::random()?, 0))
    }

    /// How often it was in vain.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    /// It answered.
    pub(crate) fn over(&mut self) {
        self.failures = 0;
    }

    /// How long to wait before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        let spread = backoff::spread(TaskId(self.seed), self.failures);
        let wait = backoff::wait(&BACKOFF, self.failures, spread) + LEAST;
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Waits before the next try.
    pub(crate) async fn wait(&mut self, timer: &Timer) {
        timer.sleep(self.next()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred workers of one machine, or of a hundred containers in which each
    /// has the same process id, lose their store in one moment.
    #[test]
    fn workers_do_not_come_back_in_one_moment() {
        let mut tenths = [0u32; 10];
        for _ in 0..100 {
            let worker = WorkerId::random().expect("random numbers");
            let mut pauses = [Pause::of(&worker, 0), Pause::of(&worker, 1)];
            for pause in &mut pauses {
                let waits: Duration = (0..6).map(|_| pause.next()).sum();
                let tenth = (waits.as_millis() / 1_300).min(9) as usize;
                tenths[tenth] += 1;
            }
            assert_ne!(pauses[0].seed, pauses[1].seed);
        }
        assert!(tenths.iter().all(|together| *together < 100), "{tenths:?}");
    }
}
