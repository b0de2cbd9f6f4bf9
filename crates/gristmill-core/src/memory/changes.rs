//! What a verb touched, for a store that writes it down before it answers.

use std::time::Duration;

use super::state::State;
use crate::{Clock, QueueName, ScheduleName, TaskId, Token};

/// Names of what was touched since the last look. Each may have changed or be
/// gone; what it is now, the state says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Tasks, by id.
    pub tasks: Vec<TaskId>,
    /// Queues whose declaration, override, pause or contract changed.
    pub queues: Vec<u32>,
    /// Queues whose numbers may have changed.
    pub numbers: Vec<u32>,
    /// Callers' ids, by queue.
    pub caller_ids: Vec<(u32, String)>,
    /// Buckets, by queue and group.
    pub buckets: Vec<(u32, String)>,
    /// Whose turn it was, by queue and priority.
    pub turns: Vec<(u32, i16)>,
    /// New leases.
    pub leases: Vec<Token>,
    /// Leases that got another deadline.
    pub extended: Vec<Token>,
    /// Schedules.
    pub schedules: Vec<ScheduleName>,
    /// Documents, by kind and name.
    pub documents: Vec<(String, String)>,
    /// Endings of tasks.
    pub endings: Vec<TaskId>,
}

impl Changes {
    /// Whether nothing was touched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

impl State {
    /// Remembers from now on what verbs touch.
    pub fn track(&mut self) {
        self.rows.track();
        self.done.track();
        self.queues.track();
        self.schedules.track();
        self.documents.track();
        self.endings.track();
        self.changes.get_or_insert_with(Changes::default);
    }

    /// What was touched since the last call.
    pub fn take_changes(&mut self) -> Changes {
        let mut changes = self.changes.as_mut().map(std::mem::take).unwrap_or_default();
        let mut ids = self.rows.take_touched();
        ids.extend(self.done.take_touched());
        ids.sort_unstable();
        ids.dedup();
        changes.tasks = ids.into_iter().map(TaskId).collect();
        changes.numbers = self.queues.take_touched();
        changes.schedules = self.schedules.take_touched();
        changes.documents = self.documents.take_touched();
        changes.endings = self.endings.take_touched().into_iter().map(TaskId).collect();
        changes
    }

    /// Takes note of a change, if anyone wants to know.
    pub(super) fn note(&mut self, change: impl FnOnce(&mut Changes)) {
        if let Some(changes) = &mut self.changes {
            change(changes);
        }
    }

    /// Takes note of the time before a verb, and of how long its caller waited
    /// for a lock that others share.
    pub fn observe(&mut self, clock: &dyn Clock, waited: Duration) {
        let (now, monotonic) = (clock.now(), clock.monotonic());
        if let Some(last) = self.last_seen.as_ref().filter(|_| !self.guard.has_looked()) {
            self.guard.resume(last, now, clock.boot().as_ref(), monotonic);
        }
        self.guard.observe(now, monotonic, waited);
        self.monotonic = monotonic;
        if self.guard.take_went_back() {
            self.clamp(now);
        }
    }

    /// Queues in which something may have become claimable since the last call.
    pub fn take_woken(&mut self) -> Vec<QueueName> {
        std::mem::take(&mut self.woken)
    }
}
