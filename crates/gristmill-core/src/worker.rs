//! What workers tell the store about themselves.

use std::time::Duration;

use crate::{QueueName, Timestamp, WorkerId};

/// What a handler did, summed up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandlerStats {
    /// Attempts that ended.
    pub processed: u64,
    /// Of them, with an error.
    pub errors: u64,
    /// Of them, sent back for another run.
    pub retried: u64,
    /// Time spent in the handler.
    pub duration: Duration,
    /// The last error.
    pub last_error: Option<String>,
}

/// One processor of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorReport {
    /// The queue it serves; none while it rotates.
    pub queue: Option<QueueName>,
    /// Tasks it holds.
    pub holding: u32,
    /// How long its current cycle has taken.
    pub cycle: Duration,
}

/// A worker's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    /// Its id, random at each start.
    pub id: WorkerId,
    /// The machine it runs on.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// The program's version.
    pub version: String,
    /// The queues it can serve.
    pub queues: Vec<QueueName>,
    /// Its processors.
    pub processors: Vec<ProcessorReport>,
    /// What its handlers did since the report before, by queue.
    pub handled: Vec<(QueueName, HandlerStats)>,
    /// The term of the assignment it follows.
    pub follows_term: Option<u64>,
    /// It is shutting down.
    pub stopping: bool,
}

/// A worker as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Its last report.
    pub report: WorkerReport,
    /// When it first reported.
    pub since: Timestamp,
    /// How long ago the last report came, by the store's clock.
    pub silent_for: Duration,
}

/// Workers silent for longer are forgotten; their leases are not touched, for
/// those have deadlines of their own.
pub const WORKER_KEPT: Duration = Duration::from_secs(3600);
