//! How long each task's program ran: from its own start to its end, not since its
//! batch was claimed and not until its settlement was written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill::TaskId;

/// Most that are remembered; of more nothing is told.
const REMEMBERED: usize = 10_000;

/// What runs and what ran, until it is told of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<HashMap<TaskId, Run>>>);

#[derive(Debug, Clone, Copy)]
enum Run {
    Since(Instant),
    Took(Duration),
}

/// A run under way; dropped, it has ended.
pub(super) struct Running<'a> {
    runs: &'a Runs,
    id: TaskId,
    since: Instant,
}

impl Runs {
    pub(super) fn begin(&self, id: TaskId) -> Running<'_> {
        let since = Instant::now();
        let mut runs = self.lock();
        if runs.len() < REMEMBERED {
            runs.insert(id, Run::Since(since));
        }
        Running { runs: self, id, since }
    }

    /// How long the task's last run took, or takes so far. Told once.
    pub(crate) fn take(&self, id: TaskId) -> Option<Duration> {
        self.lock().remove(&id).map(|run| match run {
            Run::Since(since) => since.elapsed(),
            Run::Took(took) => took,
        })
    }

    /// Forgets those that ended: nobody heard of their settlements.
    pub(crate) fn forget(&self) {
        self.lock().retain(|_, run| matches!(run, Run::Since(_)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Gone already: it was given up and told of before it ended.
        if let Some(run) = self.runs.lock().get_mut(&self.id) {
            *run = Run::Took(self.since.elapsed());
        }
    }
}
