//! Waiting for a store that does not answer: longer each time, with jitter, so
//! that a hundred workers do not come back in one moment.

use std::time::Duration;

use gristmill_core::policy::backoff;
use gristmill_core::{Backoff, TaskId};

/// Tries in vain so far.
#[derive(Debug, Default)]
pub(super) struct Pause {
    failures: u32,
}

impl Pause {
    /// How often it was in vain.
    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    /// It answered.
    pub(super) fn over(&mut self) {
        self.failures = 0;
    }

    /// Waits before the next try.
    pub(super) async fn wait(&mut self) {
        let policy =
            Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(5), jitter: true };
        let spread = backoff::spread(TaskId(i64::from(std::process::id())), self.failures);
        let wait = backoff::wait(&policy, self.failures, spread) + Duration::from_millis(50);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(wait).await;
    }
}
