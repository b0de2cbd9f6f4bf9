//! Importing: tasks that stood in another store move in with everything they
//! went through.

use std::time::Duration;

use crate::claim::damaged;
use crate::policy::duplicate::{Places, in_the_way};
use crate::{Limits, NewTask, QueueName, Refusal, State, Task, TaskId, Timestamp, Unique};

/// How long an import's mark is remembered: a copy that was killed can be
/// repeated within this time, also when its tasks have run meanwhile.
pub const MARK_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Tasks of one queue that stood in another store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Where they go.
    pub queue: QueueName,
    /// The tasks, in the order in which they get their new numbers.
    pub tasks: Vec<ImportTask>,
}

/// One task of another store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportTask {
    /// Names the task over all stores. A repeat is recognised by it, in the
    /// same memory as a caller's id.
    pub mark: String,
    /// It held its key's in-flight place: claimed before, and back.
    pub in_flight: bool,
    /// The task as the other store shows it, pending or failed. Its number and
    /// queue are not taken over.
    pub task: Task,
}

/// What became of one imported task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportAnswer {
    /// It stands here now.
    Imported {
        /// Its new number.
        id: TaskId,
    },
    /// It was imported before, and may have run since.
    Already {
        /// The number it got then.
        id: TaskId,
    },
    /// Its key's place is held by another task; nothing was merged.
    Duplicate {
        /// The one that stands.
        id: TaskId,
    },
    /// It was not taken.
    Refused(Refusal),
}

impl ImportTask {
    /// The task as it may stand here, whatever the other store says: without a
    /// lease, within the limits, and its numbers in agreement. Its state is
    /// pending or failed.
    ///
    /// # Errors
    /// Why it cannot be stored here.
    pub fn admitted(&self, limits: &Limits) -> Result<Task, Refusal> {
        let mut task = self.task.clone();
        if !matches!(task.state, State::Pending | State::Failed) {
            return Err(Refusal::Invalid(format!(
                "a task that is {} cannot be imported",
                task.state
            )));
        }
        if let Some(why) = &task.damaged {
            // What the other store cannot read would be lost on the way.
            return Err(Refusal::Invalid(damaged(why)));
        }
        let as_put = NewTask {
            payload: task.payload.clone(),
            key: task.key.clone(),
            group: task.group.clone(),
            source: task.source.clone(),
            id: Some(self.mark.clone()),
            headers: task.headers.clone(),
            settings: task.settings.clone(),
            ..NewTask::default()
        };
        if let Some(refusal) = limits.refuse(&as_put) {
            return Err(refusal);
        }
        if let Some(refusal) = task.checkpoint.as_ref().and_then(|c| limits.refuse_checkpoint(c)) {
            return Err(refusal);
        }
        task.lease = None;
        task.blocked = false;
        task.cancel_requested = false;
        task.resolved_by = None;
        task.resolved_at = None;
        task.run_at = task.run_at.clamp(Timestamp::EPOCH, Timestamp::MAX);
        task.attempts = task.attempts.min(task.claims);
        task.expiries = task.expiries.min(task.attempts);
        task.claimed_at = (task.claims > 0).then(|| task.claimed_at.unwrap_or(task.created_at));
        task.failed_at =
            (task.state == State::Failed).then(|| task.failed_at.unwrap_or(task.run_at));
        task.error = task.error.map(|error| limits.cut_error(&error));
        let surplus = task.history.len().saturating_sub(limits.history);
        task.history.drain(..surplus);
        for attempt in &mut task.history {
            attempt.ended_at = attempt.ended_at.max(attempt.claimed_at);
            attempt.error = attempt.error.take().map(|error| limits.cut_error(&error));
        }
        if let Some(note) = &mut task.note {
            note.text = limits.cut_error(&note.text);
            note.by = limits.cut_error(&note.by);
        }
        Ok(task)
    }

    /// Whether it takes its key's in-flight place.
    #[must_use]
    pub fn takes_flight(&self) -> bool {
        self.in_flight && self.task.state == State::Pending && self.task.key.is_some()
    }

    /// The task that keeps it out of the place it asks for.
    #[must_use]
    pub fn kept_out_by(&self, places: Places) -> Option<TaskId> {
        if self.task.state == State::Failed {
            // Many may stand per key; they hold no place.
            return None;
        }
        match self.task.unique {
            Unique::Pending if self.takes_flight() => places.in_flight,
            unique => in_the_way(places, unique),
        }
    }
}
