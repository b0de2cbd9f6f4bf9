//! What a handler knows of its surroundings, and how it hears of a cancel.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill_core::{ClaimedTask, FollowUp, QueueName, TaskId, WorkerId};
use tokio::sync::watch;

use crate::{Error, RawTask, TaskType};

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    /// Another worker may have the task: the result will be refused.
    LeaseLost,
    /// An operator cancelled the task.
    Operator,
    /// The worker stops and its patience is over.
    Stop,
    /// The queue's timeout passed.
    Timeout,
}

/// A handler's surroundings.
#[derive(Debug, Clone)]
pub struct Context {
    /// The queue.
    pub queue: QueueName,
    /// The worker.
    pub worker: WorkerId,
    /// The task's number.
    pub id: TaskId,
    /// Which run this is, counted from 1.
    pub attempt: u32,
    /// How long the handler may take.
    pub timeout: Duration,
    follow_ups: Arc<Mutex<Vec<FollowUp>>>,
    cancel: watch::Receiver<Option<Cancel>>,
}

impl Context {
    pub(super) fn new(
        queue: QueueName,
        worker: WorkerId,
        task: &ClaimedTask,
        timeout: Duration,
        cancel: watch::Receiver<Option<Cancel>>,
    ) -> Self {
        let (id, attempt) = (task.id, task.attempt);
        Context { queue, worker, id, attempt, timeout, follow_ups: Arc::default(), cancel }
    }

    /// Puts another task in the same step that settles this one as done: both
    /// happen or neither. Nothing is put when the attempt ends otherwise.
    ///
    /// # Errors
    /// When the task cannot be written as JSON.
    pub fn follow_up<T: TaskType>(&self, task: &T) -> Result<(), Error> {
        self.follow_up_raw(RawTask::typed(task)?)
    }

    /// As [`Context::follow_up`], for a task that is not typed.
    ///
    /// # Errors
    /// When its queue's name cannot be used or it has two starts.
    pub fn follow_up_raw(&self, task: RawTask) -> Result<(), Error> {
        let queue = QueueName::new(task.queue())?;
        let task = task.into_new_task()?;
        self.follow_ups
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(FollowUp { queue, task });
        Ok(())
    }

    /// What the handler wants put with its done.
    pub(super) fn take_follow_ups(&self) -> Vec<FollowUp> {
        std::mem::take(&mut self.follow_ups.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the handler should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.borrow().is_some()
    }

    /// Returns when the handler should stop: its lease was lost, an operator
    /// cancelled the task, its time is over, or the worker stops.
    pub async fn cancelled(&self) {
        let mut cancel = self.cancel.clone();
        // The sender lives as long as the attempt; if it is gone, so is the
        // reason to go on.
        let _ = cancel.wait_for(Option::is_some).await;
    }
}
