//! What a worker did, and how it stands.

use std::time::Duration;

use gristmill_core::{Became, ClaimedTask, HandlerStats, Outcome, QueueName, WorkerId};

use crate::worker::{Context, Left};

/// What a worker did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkReport {
    /// Attempts that ended as done.
    pub done: u64,
    /// Attempts that ended in another way and were recorded.
    pub not_done: u64,
    /// Of these, the attempts after which the task failed for good.
    pub failed: u64,
    /// Tasks given back without an attempt: at the stop, or because they could
    /// not start soon.
    pub released: u64,
    /// Settlements refused because the lease was lost.
    pub lease_lost: u64,
    /// Tasks that were gone when their attempt ended: completed in a
    /// transaction of the handler's, or deleted with their subject.
    pub gone: u64,
    /// Follow-ups the store refused. Each is logged as an error, and its task
    /// counts as not done: the store has it as an error or as failed.
    pub follow_ups_refused: u64,
    /// Cycles (a batch from its first start to its last end) that took longer
    /// than [`SLOW_CYCLE`](crate::worker::SLOW_CYCLE); each is logged as a warning.
    pub slow_cycles: u64,
    /// What it left behind as it ended; nothing is the good answer.
    pub left: Left,
}

impl WorkReport {
    /// Adds what another worker did.
    pub fn add(&mut self, other: &WorkReport) {
        self.done += other.done;
        self.not_done += other.not_done;
        self.failed += other.failed;
        self.released += other.released;
        self.lease_lost += other.lease_lost;
        self.gone += other.gone;
        self.follow_ups_refused += other.follow_ups_refused;
        self.slow_cycles += other.slow_cycles;
        self.left.add(&other.left);
    }
}

/// How a running worker stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// The worker.
    pub id: WorkerId,
    /// Processors that run.
    pub processors: usize,
    /// The queue each of them serves alone; none where it rotates.
    pub serving: Vec<Option<QueueName>>,
    /// Of them, without anything to do.
    pub idle: usize,
    /// What each queue's handler did since the start.
    pub queues: Vec<(QueueName, HandlerStats)>,
    /// What was done so far.
    pub report: WorkReport,
    /// The term of the manager that is followed; none while the worker rotates
    /// on its own.
    pub follows_term: Option<u64>,
    /// How long the store has not answered, if it should have.
    pub store_away: Option<Duration>,
}

/// An attempt that was settled.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SettledTask<'a> {
    /// Its attempt: queue, id, attempt, key and the like.
    pub context: &'a Context,
    /// How it ended, as it is on record.
    pub outcome: &'a Outcome,
    /// What became of the task: done, pending again, failed. Nothing where the
    /// store did not record it: the lease was lost, or the task was gone.
    pub became: Option<Became>,
}

/// A task that failed for good.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FailedTask<'a> {
    /// Its queue.
    pub queue: &'a QueueName,
    /// The task, as its last handler got it.
    pub task: &'a ClaimedTask,
    /// Why.
    pub error: &'a str,
}

/// A queue whose oldest ready task waits longer than the queue's `max_wait`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LateQueue<'a> {
    /// The queue.
    pub queue: &'a QueueName,
    /// How long its oldest ready task has been due.
    pub waited: Duration,
    /// How long it should wait at most.
    pub max_wait: Duration,
}
