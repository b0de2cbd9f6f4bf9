//! The worker: a process's set of processors over its queues.
//!
//! ```text
//!   processor: rotate over queues ──► claim a batch ──► hand ──► next claim meanwhile
//!                                                        │
//!   runner (a task of the runtime): handler, handler, …  │  overseer: timeout, cancel,
//!        │ outcomes                                      │  stop, give-back after 2 s
//!        ▼
//!   settler: gathers for a millisecond, one call for many
//!
//!   heartbeat (a thread): extends every open lease, sweeps the store
//!   reporter: tells the store how the worker stands, alerts on long waits
//! ```
//!
//! A processor has no more in hand than it can start within a second by the
//! run time it measured, so that tasks do not wait behind a slow handler while
//! another worker is idle.

mod aside;
mod attempt;
mod batch;
mod context;
mod crew;
mod follower;
mod hand;
mod handle;
mod heartbeat;
pub(crate) mod inline;
mod lease;
mod outcome;
mod overseer;
mod pause;
mod processor;
mod reason;
mod report;
mod reporter;
mod rotation;
mod runner;
mod served;
mod settler;
mod site;
mod stop;
mod typed;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, QueueName, WorkerId};

pub use batch::{BatchContext, Typed};
pub use context::Context;
pub use follower::WORD_HOLDS;
pub use gristmill_core::{HandlerStats, Outcome, When};
pub use handle::WorkerHandle;
pub use outcome::{IntoOutcome, Plain, fail, release_for, retry_in};
pub use reason::{Boxable, IntoReason, Local};
pub use report::{FailedTask, LateQueue, WorkReport, WorkerStats};
pub use stop::Force;
pub use typed::decode;

use crate::manager::Manager;
use crate::{Error, Mill, TaskType};
use batch::BatchHandler;
use heartbeat::Heartbeat;
use served::{Kind, Served};
use settler::OnFailed;
use site::{OnLate, Site, Terms, Wish};
use stop::Stop;

/// The user's code for a queue. What it returns settles the task.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt. Watch [`Context::cancelled`]: after it, the result
    /// counts only if it comes before the handler is dropped.
    async fn handle(&self, task: &ClaimedTask, context: &Context) -> Outcome;
}

/// A cycle longer than this is reported.
pub const SLOW_CYCLE: Duration = Duration::from_secs(10);

/// How long handlers may go on after the stop was asked for.
pub const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A queue with its handler, and what the handler is for, in words.
struct Serves {
    queue: String,
    kind: Kind,
    handles: &'static str,
}

/// A worker to be run.
#[must_use = "a worker works when it is run"]
pub struct Worker {
    mill: Mill,
    queues: Vec<Serves>,
    processors: usize,
    batch: Option<usize>,
    terms: Terms,
    stop_within: Duration,
    force: Force,
    on_failed: Option<OnFailed>,
    on_late: Option<OnLate>,
    manager: Option<Manager>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues: Vec<&str> = self.queues.iter().map(|serves| serves.queue.as_str()).collect();
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
            terms: Terms {
                lease: None,
                source: None,
                drain: false,
                word_holds: WORD_HOLDS,
                slow_cycle: SLOW_CYCLE,
            },
            stop_within: STOP_WITHIN,
            force: Force::default(),
            on_failed: None,
            on_late: None,
            manager: None,
        }
    }

    /// Serves a queue. A queue has one handler: a second one is an error when
    /// the worker starts. Several kinds of tasks share a queue as one enum.
    pub fn queue(self, name: &str, handler: Arc<dyn Handler>) -> Self {
        self.serves(name, Kind::One(handler), "raw payloads")
    }

    fn queue_of<T: TaskType>(self, handler: Arc<dyn Handler>) -> Self {
        self.serves(T::QUEUE, Kind::One(handler), std::any::type_name::<T>())
    }

    fn queue_batch<T: TaskType>(self, handler: Arc<dyn BatchHandler>) -> Self {
        self.serves(T::QUEUE, Kind::Many(handler), std::any::type_name::<T>())
    }

    fn serves(mut self, queue: &str, kind: Kind, handles: &'static str) -> Self {
        self.queues.push(Serves { queue: queue.to_owned(), kind, handles });
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
        self.terms.lease = Some(lease);
        self
    }

    /// Only tasks of this source.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.terms.source = Some(source.into());
        self
    }

    /// Called when a task fails for good: by a settlement of this worker, or
    /// because its last lease ran out, as this worker was the first to notice
    /// (of any queue of the store). Be quick: settlements wait behind it.
    pub fn on_failed(mut self, tell: impl Fn(FailedTask<'_>) + Send + Sync + 'static) -> Self {
        self.on_failed = Some(Arc::new(tell));
        self
    }

    /// Called when the oldest ready task of a served queue waits longer than
    /// the queue's `max_wait`; once, until the wait was below it again.
    pub fn on_late(mut self, tell: impl Fn(LateQueue<'_>) + Send + Sync + 'static) -> Self {
        self.on_late = Some(Arc::new(tell));
        self
    }

    /// Ends when nothing is due and nothing runs, as a cron entry wants it.
    pub fn drain(mut self, drain: bool) -> Self {
        self.terms.drain = drain;
        self
    }

    /// Runs this manager beside the worker. Of all managers of a store one
    /// leads at a time, so every worker may have one. Workers follow the one
    /// that leads whether or not they have one themselves; only draining ones
    /// rotate on their own.
    pub fn manager(mut self, manager: Manager) -> Self {
        self.manager = Some(manager);
        self
    }

    /// How long the manager's word holds that is not renewed; then the worker
    /// rotates on its own. [`WORD_HOLDS`] unless said.
    pub fn word_holds(mut self, holds: Duration) -> Self {
        self.terms.word_holds = holds.max(Duration::from_millis(30));
        self
    }

    /// A cycle (a batch from its first start to its last end) that takes longer
    /// is logged and counted; [`SLOW_CYCLE`] unless said.
    pub fn slow_cycle(mut self, limit: Duration) -> Self {
        self.terms.slow_cycle = limit;
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
    /// gives back what was not started. Dropped earlier, the worker stops in
    /// the same way by itself.
    ///
    /// # Errors
    /// When a queue does not exist or has two handlers, or the operating system
    /// denies a thread. A store that goes away is waited for; only a draining worker, which cron
    /// will start again, gives up on it after some tries.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<WorkReport, Error> {
        let mut handle = self.start().await?;
        tokio::select! {
            report = handle.ended() => return report,
            () = shutdown => {}
        }
        handle.stop().await
    }

    /// Starts working and returns at once, with a handle to change, watch and
    /// stop the worker.
    ///
    /// # Errors
    /// When a queue does not exist or has two handlers, or the operating system
    /// denies a thread.
    pub async fn start(mut self) -> Result<WorkerHandle, Error> {
        let served = self.served().await?;
        let heartbeat = Heartbeat::start(self.mill.store())?;
        let site = Arc::new(self.site(served, heartbeat.handle())?);
        let task = tokio::spawn(crew::run(site.clone(), heartbeat, self.manager.take()));
        Ok(WorkerHandle::new(site, task, self.force))
    }

    fn site(&self, served: Vec<Arc<Served>>, heartbeat: heartbeat::Handle) -> Result<Site, Error> {
        let wish = Wish { processors: self.processors, batch: self.batch, ..Wish::default() };
        let stop = Stop::new(self.stop_within, self.force.clone());
        let told = (self.on_failed.clone(), self.on_late.clone());
        let (mill, worker) = (self.mill.clone(), WorkerId::random()?);
        Ok(Site::new(mill, worker, served, wish, self.terms.clone(), stop, heartbeat, told))
    }

    /// The queues; asks the store once at the start so that a misspelt name is
    /// an error and not a silent wait.
    async fn served(&self) -> Result<Vec<Arc<Served>>, Error> {
        let queues = self.mill.inspect().queues().await?;
        let mut served = Vec::new();
        for (at, Serves { queue, kind, handles }) in self.queues.iter().enumerate() {
            // Each of the two would take the other's tasks, and end them.
            if let Some(first) = self.queues.iter().take(at).find(|first| first.queue == *queue) {
                return Err(Error::TwoHandlers {
                    queue: queue.clone(),
                    first: first.handles,
                    second: handles,
                });
            }
            let name = QueueName::new(queue)?;
            if !queues.iter().any(|queue| queue.name == name) {
                // The store's own error carries the suggestion.
                self.mill.inspect().queue(name.as_str()).await?;
            }
            served.push(Arc::new(Served::new(name, kind.clone())));
        }
        Ok(served)
    }
}
