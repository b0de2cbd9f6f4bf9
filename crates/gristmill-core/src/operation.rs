//! What operators do to tasks by hand: retry, resolve, discard, cancel.

use crate::{Limits, Note, Result, Start, State, StoreError, TaskFilter, TaskId};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Failed tasks run again, as if put anew.
    Retry,
    /// The same, and what their handlers kept is forgotten: they begin anew.
    RetryFresh,
    /// Failed tasks were dealt with by hand: they leave the failed list.
    Resolve,
    /// Failed tasks are deleted and counted.
    Discard,
    /// Pending tasks are deleted and counted; for processing ones the handler
    /// is cancelled at its next heartbeat.
    Cancel,
}

impl Action {
    /// All actions.
    pub const ALL: [Action; 5] =
        [Action::Retry, Action::RetryFresh, Action::Resolve, Action::Discard, Action::Cancel];

    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Retry => "retry",
            Action::RetryFresh => "retry_fresh",
            Action::Resolve => "resolve",
            Action::Discard => "discard",
            Action::Cancel => "cancel",
        }
    }

    /// Whether it can be done to a task in this state.
    #[must_use]
    pub const fn applies_to(self, state: State) -> bool {
        match self {
            Action::Retry | Action::RetryFresh | Action::Resolve | Action::Discard => {
                matches!(state, State::Failed)
            }
            Action::Cancel => matches!(state, State::Pending | State::Processing),
        }
    }
}

/// To which tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// These.
    Ids(Vec<TaskId>),
    /// All that match, going on behind `after`.
    Matching {
        /// Which ones; those in a state the action does not apply to are
        /// passed over.
        filter: TaskFilter,
        /// Where the step before ended.
        after: Option<TaskId>,
    },
}

/// One bounded step of an operator's action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub action: Action,
    /// To which.
    pub selection: Selection,
    /// At most this many tasks in this step.
    pub limit: usize,
    /// Who does it.
    pub by: String,
    /// Why; becomes the task's note. Without one an older note stays.
    pub note: Option<String>,
    /// When what is retried may run again.
    pub start: Start,
}

impl Operation {
    /// The tasks it names, by id; nothing when it says which ones by a filter.
    ///
    /// # Errors
    /// When it names more than one step may move.
    pub fn named(&self, limits: &Limits) -> Result<Option<Vec<TaskId>>> {
        let Selection::Ids(ids) = &self.selection else {
            return Ok(None);
        };
        if ids.len() > limits.page {
            return Err(StoreError::invalid(format!(
                "{} ids in one step and {} are allowed",
                ids.len(),
                limits.page
            )));
        }
        let mut ids = ids.clone();
        ids.sort_unstable();
        Ok(Some(ids))
    }

    /// At most this many tasks in this step.
    #[must_use]
    pub fn step(&self, limits: &Limits) -> usize {
        self.limit.clamp(1, limits.page)
    }

    /// The note it leaves on a task, cut to what is kept.
    #[must_use]
    pub fn left_note(&self, limits: &Limits) -> Option<Note> {
        self.note
            .as_ref()
            .map(|text| Note { text: limits.cut_error(text), by: limits.cut_error(&self.by) })
    }
}

/// What became of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationAnswer {
    /// Done as asked.
    Moved,
    /// It runs: its worker hears of the cancel at the next heartbeat.
    CancelRequested,
    /// It cannot take its key's waiting place, which this task holds. It
    /// stays failed.
    DuplicateOf(TaskId),
    /// The action does not apply to its state.
    WrongState(State),
    /// Somebody's open transaction has changed it: nothing was done. Try again
    /// when that has ended.
    Held,
    /// There is no such task.
    Gone,
}

/// What one step did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperationReport {
    /// Each task that was meant, in order of ids.
    pub answers: Vec<(TaskId, OperationAnswer)>,
    /// Where the next step goes on, when this one ended at a limit.
    pub next: Option<TaskId>,
}

impl OperationReport {
    /// How many were moved or asked to cancel.
    #[must_use]
    pub fn moved(&self) -> usize {
        self.answers
            .iter()
            .filter(|(_, a)| matches!(a, OperationAnswer::Moved | OperationAnswer::CancelRequested))
            .count()
    }
}
