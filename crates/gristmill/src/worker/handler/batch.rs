//! Handlers over a batch: many tasks at once, each of which may be settled by
//! itself; what is left open is settled by the return value.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{Outcome, QueueName, TaskId, Timestamp, When, WorkerId};

use crate::worker::handler::typed::decode;
use crate::worker::heartbeat::lease::Cancel;
use crate::worker::run::hand::Hand;
use crate::worker::settle::settler::Settler;
use crate::worker::{Context, IntoReason};
use crate::{Mill, TaskType};

/// A typed task of a batch, with everything about its attempt.
#[derive(Debug)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The payload.
    pub task: T,
    /// Its attempt: id, key, attempt, follow-ups and the like.
    pub context: Context,
}

impl<T> Typed<T> {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.context.id
    }

    /// Which run this is, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.context.attempt
    }

    /// How often the task came back before.
    #[must_use]
    pub fn returns(&self) -> u32 {
        self.context.returns()
    }

    /// When the attempt before this one fell due.
    #[must_use]
    pub fn prev_run_at(&self) -> Option<Timestamp> {
        self.context.prev_run_at
    }

    /// What the task is about.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.context.key()
    }
}

impl<T> Deref for Typed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.task
    }
}

/// A batch's surroundings, and the way to settle single tasks of it.
#[derive(Clone)]
pub struct BatchContext {
    /// The queue.
    pub queue: QueueName,
    /// The worker.
    pub worker: WorkerId,
    /// How long the handler may take for the whole batch.
    pub timeout: Duration,
    hand: Arc<Hand>,
    runner: u64,
    settler: Arc<Settler>,
    ids: Arc<[TaskId]>,
}

impl std::fmt::Debug for BatchContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchContext").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl BatchContext {
    pub(crate) fn new(
        hand: Arc<Hand>,
        runner: u64,
        settler: Arc<Settler>,
        open: &[Context],
    ) -> Self {
        BatchContext {
            queue: hand.served.name.clone(),
            worker: hand.worker.clone(),
            timeout: open.first().map_or(hand.timeout, |context| context.timeout),
            ids: open.iter().map(|context| context.id).collect(),
            hand,
            runner,
            settler,
        }
    }

    /// The mill, to put and to look.
    #[must_use]
    pub fn mill(&self) -> &Mill {
        &self.hand.lease.mill
    }

    /// The tasks that can be read; the others are settled as errors.
    pub(crate) fn decode<T: TaskType>(&self, open: Vec<Context>) -> Vec<Typed<T>> {
        let mut tasks = Vec::with_capacity(open.len());
        for context in open {
            match decode::<T>(context.task()) {
                Ok(task) => tasks.push(Typed { task, context }),
                // An error and not a failure for good: a newer worker may
                // read it.
                Err(error) => {
                    self.error(context.id, error);
                }
            }
        }
        tasks
    }

    /// This one is done.
    pub fn done(&self, id: TaskId) -> bool {
        self.settle(id, Outcome::Done)
    }

    /// This one went wrong: the queue's policy decides what follows.
    /// The error is kept with all its causes.
    pub fn error<Kind>(&self, id: TaskId, error: impl IntoReason<Kind>) -> bool {
        self.settle(id, Outcome::Error(error.into_reason()))
    }

    /// This one can never succeed: failed for good.
    pub fn fail<Kind>(&self, id: TaskId, reason: impl IntoReason<Kind>) -> bool {
        self.settle(id, Outcome::Fail(reason.into_reason()))
    }

    /// This one is to run again then; counts as an attempt.
    pub fn retry(&self, id: TaskId, at: When) -> bool {
        self.settle(id, Outcome::Retry { at, reason: None })
    }

    /// This one goes back; the attempt does not count.
    pub fn release(&self, id: TaskId) -> bool {
        self.settle(id, Outcome::Release { at: None, started: true })
    }

    /// Settles one task in any way. Returns whether it was open: a task of
    /// this batch is settled once.
    pub fn settle(&self, id: TaskId, outcome: Outcome) -> bool {
        let Some((context, late)) = self.hand.take(self.runner, id) else { return false };
        self.settler.ended(&self.hand, context, Some(outcome), late, true);
        true
    }

    /// Whether the handler should stop with the whole batch.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let mut all = true;
        for id in self.ids.iter() {
            match self.hand.lease.cancelled(*id) {
                Some(Cancel::Operator) => {}
                Some(_) => return true,
                None => all = false,
            }
        }
        all
    }

    /// Returns when the handler should stop with the whole batch: the lease
    /// was lost, its time is over, or the worker stops.
    pub async fn cancelled(&self) {
        let mut board = self.hand.lease.board();
        while !self.is_cancelled() {
            if board.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Handles many tasks at once.
#[async_trait]
pub(crate) trait BatchHandler: Send + Sync + 'static {
    async fn handle(&self, open: Vec<Context>, batch: BatchContext) -> Outcome;
}
