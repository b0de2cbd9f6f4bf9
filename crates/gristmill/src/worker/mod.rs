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
//!   heartbeat (a thread): extends every open lease, sweeps the store, ends what was
//!        not extended in time, keeps the time of a stop
//!   reporter: tells the store how the worker stands, alerts on long waits
//! ```
//!
//! A processor has no more in hand than it can start within a second by the
//! run time it measured, so that tasks do not wait behind a slow handler while
//! another worker is idle.

mod aside;
mod attempt;
mod batch;
mod beat;
mod context;
mod crew;
mod follower;
mod hand;
mod handle;
mod heartbeat;
pub(crate) mod inline;
mod lease;
mod left;
mod outcome;
mod overseer;
mod pending;
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
use gristmill_core::{ClaimedTask, Clock, QueueName, SystemClock, WorkerId};
use tokio::sync::watch;

pub use batch::{BatchContext, Typed};
pub use context::Context;
pub use follower::WORD_HOLDS;
pub use gristmill_core::{HandlerStats, Outcome, When};
pub use handle::WorkerHandle;
pub use left::{Left, LeftTask};
pub use outcome::{IntoOutcome, Plain, fail, release_for, retry_in};
pub use reason::{Boxable, IntoReason, Local};
pub use report::{FailedTask, LateQueue, WorkReport, WorkerStats};
pub use stop::{Force, STOP_NOW};
pub use typed::decode;

use crate::manager::Manager;
use crate::timer::Timer;
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
    clock: Arc<dyn Clock>,
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
                timed: true,
            },
            clock: Arc::new(SystemClock::default()),
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

    /// How long handlers may go on after the stop was asked for: [`STOP_WITHIN`]
    /// unless said. Then they are cancelled, and [`STOP_NOW`] later the stop is
    /// over, whatever the store or a handler does.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// By which clock the worker paces itself and keeps its deadlines: timeouts,
    /// heartbeats, the ends of leases, waits between two looks, the stop. The
    /// machine's unless said; by a [`ManualClock`](gristmill_core::ManualClock)
    /// time passes for it when a test moves the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What ends the patience of a graceful stop: a second signal.
    #[must_use]
    pub fn force(&self) -> Force {
        self.force.clone()
    }

    /// Works until `shutdown` ends (or everything is drained): then claims no
    /// more, lets handlers finish within the limit, cancels what is left and
    /// gives back what was not started. Ends [`STOP_NOW`] after the limit at the
    /// latest, and says in [`WorkReport::left`] what it did not wait for. Dropped
    /// earlier, the worker stops in the same way by itself.
    ///
    /// # Errors
    /// When a queue does not exist or has two handlers, or the operating system
    /// denies a thread. A store that goes away is waited for; only a draining worker, which cron
    /// will start again, gives up on it after some tries.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<WorkReport, Error> {
        let mut shutdown = std::pin::pin!(shutdown);
        let handle = tokio::select! {
            biased;
            // The store may be away already.
            () = &mut shutdown => return Ok(WorkReport::default()),
            handle = self.start() => handle?,
        };
        tokio::select! {
            report = handle.ended() => return report,
            () = shutdown => {}
        }
        handle.stop().await
    }

    /// Works until the process is told to stop, or everything is drained. The
    /// first SIGTERM, SIGINT (Ctrl-C) or SIGHUP stops it as the end of
    /// `shutdown` does in [`Worker::run`]; the second one ends the patience, and
    /// the process within [`STOP_NOW`], with exit code
    /// [`INTERRUPTED`](crate::signal::INTERRUPTED), whatever the store or a
    /// handler does: also when handlers block every thread. So does a stop that
    /// left a handler running, [`STOP_NOW`] after this returned: the runtime
    /// would wait for it for ever. [`crate::signal::Signals`] does the same for
    /// several workers.
    ///
    /// # Errors
    /// As [`Worker::run`], and when signals cannot be heard.
    pub async fn run_until_signalled(self) -> Result<WorkReport, Error> {
        let signals = crate::signal::Signals::listen()?;
        signals.stops(&self);
        let ended = self.run(signals.asked()).await;
        if let Ok(report) = &ended {
            signals.ended(report);
        }
        ended
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.stop_within
    }

    /// Starts working and returns at once, with a handle to change, watch and
    /// stop the worker.
    ///
    /// # Errors
    /// When a queue does not exist or has two handlers, or the operating system
    /// denies a thread.
    pub async fn start(mut self) -> Result<WorkerHandle, Error> {
        let served = self.served().await?;
        let stop = self.stop();
        let heartbeat = Heartbeat::start(&self.mill, self.timer(), stop.clone())?;
        let site = Arc::new(self.site(served, heartbeat.handle(), stop)?);
        let (ends, ended) = watch::channel(None);
        let work = crew::run(site.clone(), heartbeat, self.manager.take());
        tokio::spawn(async move {
            ends.send_replace(Some(work.await));
        });
        Ok(WorkerHandle::new(site, ended, self.force))
    }

    fn timer(&self) -> Timer {
        Timer::by(self.clock.clone())
    }

    fn stop(&self) -> Arc<Stop> {
        Arc::new(Stop::new(self.stop_within, self.force.clone(), self.timer()))
    }

    fn site(
        &self,
        served: Vec<Arc<Served>>,
        heartbeat: heartbeat::Handle,
        stop: Arc<Stop>,
    ) -> Result<Site, Error> {
        let wish = Wish { processors: self.processors, batch: self.batch, ..Wish::default() };
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
