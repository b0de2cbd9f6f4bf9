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

mod claim;
mod control;
mod handler;
mod heartbeat;
mod run;
mod settle;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::Clock;

pub use control::follower::WORD_HOLDS;
pub use control::handle::WorkerHandle;
pub use control::left::{Left, LeftTask};
pub(crate) use control::orders::KIND as ORDERS;
pub use control::orders::Orders;
pub use control::report::{FailedTask, LateQueue, SettledTask, WorkReport, WorkerStats};
pub use control::stop::{Force, STOP_NOW};
pub use gristmill_core::{HandlerStats, Outcome, When};
pub use handler::Handler;
pub use handler::batch::{BatchContext, Typed};
pub use handler::context::Context;
pub use handler::function::{FromAttempt, FromBatch, IntoBatchHandler, IntoHandler, Layered};
pub use handler::json::Json;
pub use handler::layer::{self, Attempt, Layer, Next, from_fn, from_fn_with_state};
pub use handler::outcome::{IntoOutcome, Plain, fail, release_for, retry_in};
pub use handler::reason::{Boxable, IntoReason, Local};
pub use handler::state::{FromRef, State};
pub use handler::typed::decode;
pub(crate) use run::inline;

use crate::manager::Manager;
use crate::{Error, Mill};
use claim::served::Kind;
use control::plan::{Plan, Serves};

/// A cycle longer than this is reported.
pub const SLOW_CYCLE: Duration = Duration::from_secs(10);

/// How long handlers may go on after the stop was asked for.
pub const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A worker to be run. `S` is the state that its handlers share, and said by
/// [`Worker::state`].
#[must_use = "a worker works when it is run"]
pub struct Worker<S = ()> {
    state: S,
    pub(crate) plan: Plan,
}

impl<S> std::fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues: Vec<&str> =
            self.plan.serves.iter().map(|serves| serves.queue.as_str()).collect();
        f.debug_struct("Worker").field("queues", &queues).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker with one processor and no queue yet.
    pub fn new(mill: &Mill) -> Self {
        Worker { state: (), plan: Plan::new(mill) }
    }
}

impl<S> Worker<S> {
    /// What the handlers that are said from here on share: each may take it, or a
    /// part of it ([`FromRef`]), as [`State`]. It is cloned for each attempt, so
    /// let it be an `Arc` or a struct of handles.
    ///
    /// ```
    /// # use gristmill::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Mail { to: String }
    /// # impl TaskType for Mail { const QUEUE: &'static str = "mails"; }
    /// #[derive(Clone)]
    /// struct App {
    ///     sender: &'static str, // a pool, a client, a configuration
    /// }
    ///
    /// async fn send(mail: Mail, State(app): State<App>) {
    ///     println!("from {} to {}", app.sender, mail.to);
    /// }
    ///
    /// # async fn example(mill: Mill) -> Result<(), gristmill::Error> {
    /// let app = App { sender: "shop@example.org" };
    /// Worker::new(&mill).state(app).handle(send).run_until_signalled().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn state<T>(self, state: T) -> Worker<T> {
        Worker { state, plan: self.plan }
    }

    /// Puts this around every handler of the worker, whenever it was said: the
    /// first layer is the outermost. [`from_fn`] makes one of an async function,
    /// and, with the feature `tower`, `layer::tower` of a layer of tower.
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.plan.layers.push(Arc::new(layer));
        self
    }

    /// Serves a queue. A queue has one handler: a second one is an error when
    /// the worker starts. Several kinds of tasks share a queue as one enum.
    pub fn queue(self, name: &str, handler: Arc<dyn Handler>) -> Self {
        self.serves(name, Kind::One(handler), "raw payloads")
    }

    fn serves(mut self, queue: &str, kind: Kind, handles: &'static str) -> Self {
        self.plan.serves.push(Serves { queue: queue.to_owned(), kind, handles });
        self
    }

    /// How many attempts run side by side: one unless said. None is an error when
    /// the worker starts.
    pub fn processors(mut self, processors: usize) -> Self {
        self.plan.processors = processors;
        self
    }

    /// Most tasks in one claim, instead of the queue's own `batch_size`.
    pub fn batch(mut self, batch: usize) -> Self {
        self.plan.batch = Some(batch.max(1));
        self
    }

    /// The lease's length, instead of the queue's own.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.plan.terms.lease = Some(lease);
        self
    }

    /// Only tasks of this source.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.plan.terms.source = Some(source.into());
        self
    }

    /// Called when a task fails for good: by a settlement of this worker, or
    /// because its last lease ran out, as this worker was the first to notice
    /// (of any queue of the store). Be quick: settlements wait behind it.
    pub fn on_failed(mut self, tell: impl Fn(FailedTask<'_>) + Send + Sync + 'static) -> Self {
        self.plan.on_failed = Some(Arc::new(tell));
        self
    }

    /// Called when the oldest ready task of a served queue waits longer than
    /// the queue's `max_wait`; once, until the wait was below it again.
    pub fn on_late(mut self, tell: impl Fn(LateQueue<'_>) + Send + Sync + 'static) -> Self {
        self.plan.on_late = Some(Arc::new(tell));
        self
    }

    /// Called for each settlement of this worker that the store has answered, with
    /// how the attempt ended and what became of the task. Be quick: settlements
    /// wait behind it.
    pub fn on_settled(mut self, tell: impl Fn(SettledTask<'_>) + Send + Sync + 'static) -> Self {
        self.plan.on_settled = Some(Arc::new(tell));
        self
    }

    /// Ends when nothing is due and nothing runs, as a cron entry wants it.
    pub fn drain(mut self, drain: bool) -> Self {
        self.plan.terms.drain = drain;
        self
    }

    /// Runs this manager beside the worker. Of all managers of a store one
    /// leads at a time, so every worker may have one. Workers follow the one
    /// that leads whether or not they have one themselves; only draining ones
    /// rotate on their own.
    pub fn manager(mut self, manager: Manager) -> Self {
        self.plan.manager = Some(manager);
        self
    }

    /// How long the manager's word holds that is not renewed; then the worker
    /// rotates on its own. [`WORD_HOLDS`] unless said.
    pub fn word_holds(mut self, holds: Duration) -> Self {
        self.plan.terms.word_holds = holds.max(Duration::from_millis(30));
        self
    }

    /// A cycle (a batch from its first start to its last end) that takes longer
    /// is logged and counted; [`SLOW_CYCLE`] unless said.
    pub fn slow_cycle(mut self, limit: Duration) -> Self {
        self.plan.terms.slow_cycle = limit;
        self
    }

    /// How long handlers may go on after the stop was asked for: [`STOP_WITHIN`]
    /// unless said. Then they are cancelled, and [`STOP_NOW`] later the stop is
    /// over, whatever the store or a handler does.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.plan.stop_within = limit;
        self
    }

    /// By which clock the worker paces itself and keeps its deadlines: timeouts,
    /// heartbeats, the ends of leases, waits between two looks, the stop. The
    /// machine's unless said; by a [`ManualClock`](gristmill_core::ManualClock)
    /// time passes for it when a test moves the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.plan.clock = clock;
        self
    }

    /// What ends the patience of a graceful stop: a second signal.
    #[must_use]
    pub fn force(&self) -> Force {
        self.plan.force.clone()
    }

    /// Works until `shutdown` ends (or everything is drained): then claims no
    /// more, lets handlers finish within the limit, cancels what is left and
    /// gives back what was not started. Ends [`STOP_NOW`] after the limit at the
    /// latest, and says in [`WorkReport::left`] what it did not wait for. Dropped
    /// earlier, the worker stops in the same way by itself.
    ///
    /// # Errors
    /// When there is no handler or no processor, a queue does not exist or has two
    /// handlers, or the operating system denies a thread. A store that goes away is waited for; only a draining worker, which cron
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
        self.plan.stop_within
    }

    /// Starts working and returns at once, with a handle to change, watch and
    /// stop the worker.
    ///
    /// # Errors
    /// When there is no handler or no processor, a queue does not exist or has two
    /// handlers, or the operating system denies a thread.
    pub async fn start(self) -> Result<WorkerHandle, Error> {
        self.plan.start().await
    }
}
