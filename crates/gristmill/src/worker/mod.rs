//! The worker: a process's set of processors over its queues.
//!
//! ```text
//!   claim a batch ──► one attempt after the other ──► settle each
//!        ▲                  │        ▲
//!        │                  │        └── cancelled: lease lost, operator, stop
//!   rotate over queues      └── timeout, panic
//!
//!   beside it, on a thread of its own: the heartbeat extends every open
//!   lease, and sweeps the store once a second
//! ```
//!
//! A processor claims no more than it can start within a second by the run
//! time it measured, so that tasks do not wait behind a slow handler while
//! another worker is idle.

mod attempt;
mod context;
mod heartbeat;
mod processor;
mod rotation;
mod stop;
mod typed;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, Outcome, QueueName, StoreError, WorkerId};

pub use context::Context;
pub use stop::Force;
pub use typed::decode;

use crate::{Error, Mill};
use heartbeat::Heartbeat;
use processor::Processor;
use rotation::Served;
use stop::Stop;

/// The user's code for a queue. What it returns settles the task.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt. Watch [`Context::cancelled`]: after it, the result
    /// counts only if it comes before the handler is dropped.
    async fn handle(&self, task: &ClaimedTask, context: &Context) -> Outcome;
}

/// What a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkReport {
    /// Attempts that ended as done.
    pub done: u64,
    /// Attempts that ended in another way and were recorded.
    pub not_done: u64,
    /// Tasks given back at the stop without an attempt.
    pub released: u64,
    /// Settlements refused because the lease was lost.
    pub lease_lost: u64,
    /// Tasks that were gone when their attempt ended: completed in a
    /// transaction of the handler's, or deleted with their subject.
    pub gone: u64,
    /// Follow-ups the store did not take; each is logged as an error.
    pub follow_ups_refused: u64,
}

impl WorkReport {
    fn add(&mut self, other: &WorkReport) {
        self.done += other.done;
        self.not_done += other.not_done;
        self.released += other.released;
        self.lease_lost += other.lease_lost;
        self.gone += other.gone;
        self.follow_ups_refused += other.follow_ups_refused;
    }
}

/// How long handlers may go on after the stop was asked for.
pub const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A worker to be run.
#[must_use = "a worker works when it is run"]
pub struct Worker {
    mill: Mill,
    queues: Vec<(String, Arc<dyn Handler>)>,
    processors: usize,
    batch: Option<usize>,
    lease: Option<Duration>,
    source: Option<String>,
    drain: bool,
    stop_within: Duration,
    force: Force,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues: Vec<&str> = self.queues.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Worker").field("queues", &queues).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker with one processor and no queue yet.
    pub fn new(mill: &Mill) -> Self {
        Worker {
            mill: mill.clone(),
            queues: Vec::new(),
            processors: 1,
            batch: None,
            lease: None,
            source: None,
            drain: false,
            stop_within: STOP_WITHIN,
            force: Force::default(),
        }
    }

    /// Serves a queue.
    pub fn queue(mut self, name: &str, handler: Arc<dyn Handler>) -> Self {
        self.queues.push((name.to_owned(), handler));
        self
    }

    /// How many attempts run side by side.
    pub fn processors(mut self, processors: usize) -> Self {
        self.processors = processors.max(1);
        self
    }

    /// Most tasks in one claim, instead of the queue's own `batch_size`.
    pub fn batch(mut self, batch: usize) -> Self {
        self.batch = Some(batch.max(1));
        self
    }

    /// The lease's length, instead of the queue's own.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Only tasks of this source.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Ends when nothing is due and nothing runs, as a cron entry wants it.
    pub fn drain(mut self, drain: bool) -> Self {
        self.drain = drain;
        self
    }

    /// How long handlers may go on after the stop was asked for.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// What ends the patience of a graceful stop: a second signal.
    #[must_use]
    pub fn force(&self) -> Force {
        self.force.clone()
    }

    /// Works until `shutdown` ends (or everything is drained): then claims no
    /// more, lets handlers finish within the limit, cancels what is left and
    /// gives back what was not started.
    ///
    /// # Errors
    /// When a queue does not exist or the operating system denies a thread. A
    /// store that goes away is waited for; only a draining worker, which cron
    /// will start again, gives up on it after some tries.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<WorkReport, Error> {
        let served = Arc::new(self.served().await?);
        let worker = WorkerId::random()?;
        let stop = Arc::new(Stop::new(self.stop_within, self.force.clone()));
        let heartbeat = Heartbeat::start(self.mill.store())?;
        tracing::info!(%worker, processors = self.processors, "worker starts");
        let mut processors = tokio::task::JoinSet::new();
        for number in 0..self.processors {
            let processor = Processor {
                mill: self.mill.clone(),
                worker: worker.clone(),
                served: served.clone(),
                first: number,
                batch: self.batch,
                lease: self.lease,
                source: self.source.clone(),
                drain: self.drain,
                stop: stop.clone(),
                heartbeat: heartbeat.handle(),
            };
            processors.spawn(processor.run());
        }
        let mut report = WorkReport::default();
        let mut shutdown = std::pin::pin!(shutdown);
        let mut asked = false;
        let mut failed: Option<StoreError> = None;
        loop {
            tokio::select! {
                () = &mut shutdown, if !asked => {
                    asked = true;
                    tracing::info!(%worker, "worker stops: no more claims");
                    stop.ask();
                }
                ended = processors.join_next() => match ended {
                    Some(Ok((part, error))) => {
                        report.add(&part);
                        failed = failed.or(error);
                    }
                    // A processor ends by itself; if it panicked, its leases
                    // run out and the tasks come back.
                    Some(Err(error)) => tracing::error!(%error, "a processor ended badly"),
                    None => break,
                },
            }
        }
        heartbeat.end().await;
        tracing::info!(%worker, done = report.done, "worker ended");
        failed.map_or(Ok(report), |error| Err(error.into()))
    }

    /// The queues with their settings; asks the store once at the start so
    /// that a misspelt name is an error and not a silent wait.
    async fn served(&self) -> Result<Vec<Served>, Error> {
        let queues = self.mill.inspect().queues().await?;
        let mut served = Vec::new();
        for (name, handler) in &self.queues {
            let name = QueueName::new(name)?;
            if !queues.iter().any(|queue| queue.name == name) {
                // The store's own error carries the suggestion.
                self.mill.inspect().queue(name.as_str()).await?;
            }
            served.push(Served::new(name, handler.clone()));
        }
        Ok(served)
    }
}
