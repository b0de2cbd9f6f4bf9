//! Reading many tasks: which ones, and a page at a time.

use crate::{QueueName, State, Task, TaskId, Timestamp};

/// Which tasks are meant. Nothing said means all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// In this state.
    pub state: Option<State>,
    /// With this key.
    pub key: Option<String>,
    /// Of this group.
    pub group: Option<String>,
    /// Of this source.
    pub source: Option<String>,
    /// Whose last error contains this text.
    pub error_contains: Option<String>,
    /// Claimed more often than this.
    pub claims_over: Option<u32>,
    /// Of those that are pending: whether it waits behind another task of its key.
    pub blocked: Option<bool>,
    /// That may run by this instant.
    pub runs_by: Option<Timestamp>,
    /// That may run only after this instant.
    pub runs_after: Option<Timestamp>,
    /// That stood so at this instant already: put by then, and failed by then where it
    /// has failed. What came to match later is left alone.
    pub stood_at: Option<Timestamp>,
}

impl TaskFilter {
    /// Narrowed to pending tasks that are due.
    #[must_use]
    pub fn ready(self, now: Timestamp) -> Self {
        let state = Some(State::Pending);
        TaskFilter { state, blocked: Some(false), runs_by: Some(now), ..self }
    }

    /// Narrowed to pending tasks whose time has not come.
    #[must_use]
    pub fn delayed(self, now: Timestamp) -> Self {
        let state = Some(State::Pending);
        TaskFilter { state, blocked: Some(false), runs_after: Some(now), ..self }
    }

    /// Narrowed to pending tasks that wait behind another one of their key.
    #[must_use]
    pub fn blocked(self) -> Self {
        TaskFilter { state: Some(State::Pending), blocked: Some(true), ..self }
    }

    /// Whether the task is meant. Stores may narrow by index first, but this
    /// decides.
    #[must_use]
    pub fn matches(&self, task: &Task) -> bool {
        self.queue.as_ref().is_none_or(|queue| *queue == task.queue)
            && self.state.is_none_or(|state| state == task.state)
            && (self.key.is_none() || self.key == task.key)
            && (self.group.is_none() || self.group == task.group)
            && (self.source.is_none() || self.source == task.source)
            && self
                .error_contains
                .as_ref()
                .is_none_or(|part| task.error.as_ref().is_some_and(|e| e.contains(part.as_str())))
            && self.claims_over.is_none_or(|n| task.claims > n)
            && self.blocked.is_none_or(|blocked| task.blocked == blocked)
            && self.runs_by.is_none_or(|at| task.run_at <= at)
            && self.runs_after.is_none_or(|at| task.run_at > at)
            && self.stood_at.is_none_or(|at| {
                task.created_at <= at && task.failed_at.is_none_or(|failed| failed <= at)
            })
    }
}

/// In which direction a list runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// From the smallest id up.
    #[default]
    Oldest,
    /// From the largest id down.
    Newest,
}

/// Asks for a page of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListRequest {
    /// Which ones.
    pub filter: TaskFilter,
    /// Direction.
    pub order: Order,
    /// Go on behind this task (a page's `next`).
    pub after: Option<TaskId>,
    /// At most this many.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The tasks, by id in the asked direction.
    pub tasks: Vec<Task>,
    /// Where to go on, when the page ended at a limit. It may be short, even
    /// empty, and still have one: a store looks at a bounded number of tasks a
    /// call ([`Limits::looks`](crate::Limits::looks)). What stood from the first
    /// page to the last and matched all along is on exactly one of them.
    pub next: Option<TaskId>,
    /// At least so many tasks were looked at for it.
    pub looked: u64,
}
