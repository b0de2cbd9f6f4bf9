//! The one wrapper around every store: spans, numbers and events, so that no
//! store can differ in what it reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use tracing::{Instrument, debug_span};

use crate::{
    Claim, ClaimRequest, Declaration, Declared, Fire, FireAnswer, Import, ImportAnswer, Operation,
    OperationReport, PutReport, PutRequest, QueueName, Result, Schedule, ScheduleDeclaration,
    ScheduleName, SettingsPatch, SettleAnswer, Settlement, Store, SweepReport, TaskId, WorkerId,
};

/// What just happened in the store, for whoever watches. Watchers that are too
/// slow lose events; the store never waits for them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// Tasks were put.
    Put {
        /// Where.
        queue: QueueName,
        /// How many are new.
        enqueued: usize,
        /// How many stood already.
        duplicates: usize,
        /// How many were not taken.
        refused: usize,
    },
    /// Tasks were claimed.
    Claimed {
        /// From where.
        queue: QueueName,
        /// By whom.
        worker: WorkerId,
        /// Which.
        tasks: Vec<TaskId>,
    },
    /// An attempt was settled.
    Settled {
        /// The task.
        id: TaskId,
        /// What the store answered.
        answer: SettleAnswer,
    },
    /// An operator acted.
    Operated {
        /// What was asked.
        operation: Operation,
        /// How many tasks moved.
        moved: usize,
    },
    /// A queue was declared, changed, paused or resumed.
    QueueChanged {
        /// The queue.
        queue: QueueName,
    },
    /// A schedule fired or was changed.
    ScheduleChanged {
        /// The schedule.
        schedule: ScheduleName,
    },
    /// Time moved tasks.
    Swept {
        /// How.
        report: SweepReport,
    },
}

/// How often a verb was called, how often it failed, and how long it took.
#[derive(Debug, Default)]
pub struct VerbNumbers {
    calls: AtomicU64,
    errors: AtomicU64,
    micros: AtomicU64,
    /// Each call is in one of them; the last is for what took longer than all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
}

/// Upper bounds of the buckets in which calls are counted, in milliseconds.
pub const BOUNDS: [u64; 9] = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000];

impl VerbNumbers {
    fn count(&self, took: Duration, failed: bool) {
        let within = |bound: &u64| took <= Duration::from_millis(*bound);
        let bucket = BOUNDS.iter().position(within).unwrap_or(BOUNDS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(failed), Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Calls that ended in an error.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Calls that took no longer than each of [`BOUNDS`], and all of them.
    #[must_use]
    pub fn within(&self) -> [u64; BOUNDS.len() + 1] {
        let mut below = 0;
        std::array::from_fn(|at| {
            below += self.buckets.get(at).map_or(0, |bucket| bucket.load(Ordering::Relaxed));
            below
        })
    }

    /// Time spent in all calls.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

macro_rules! verbs {
    ($($verb:ident),+ $(,)?) => {
        /// Numbers of every verb that does work.
        #[derive(Debug, Default)]
        pub struct Verbs { $( #[doc = concat!("`", stringify!($verb), "`")] pub $verb: VerbNumbers, )+ }

        impl Verbs {
            /// Every verb's name with its numbers.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &VerbNumbers)> {
                [$( (stringify!($verb), &self.$verb) ),+].into_iter()
            }
        }
    };
}
verbs! {
    put, claim, settle, extend, checkpoint, endings, wait_ended, open_under, reclaim, sweep, wait, find, get, list, operate, import, declare_queue,
    override_queue, reset_queue, pause_queue, register_contract, queues, stats, minutes,
    declare_schedule, schedules, remove_schedule, pause_schedule, fire, document,
    documents, save_document, diagnose,
    close,
}

/// A store with its observers.
#[derive(Debug)]
pub struct Observed {
    inner: Arc<dyn Store>,
    verbs: Verbs,
    events: broadcast::Sender<StoreEvent>,
    /// For how long the oldest transaction was open at the last sweep, in microseconds.
    oldest_transaction: AtomicU64,
}

/// Events a slow watcher may fall behind.
const EVENTS_KEPT: usize = 1024;

impl Observed {
    /// Wraps a store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let (verbs, events) = (Verbs::default(), broadcast::channel(EVENTS_KEPT).0);
        Observed { inner, verbs, events, oldest_transaction: AtomicU64::new(0) }
    }

    /// For how long the oldest transaction was open that keeps dead rows of the store, when
    /// this process last swept; zero for none, and where nobody can know.
    #[must_use]
    pub fn oldest_transaction(&self) -> Duration {
        Duration::from_micros(self.oldest_transaction.load(Ordering::Relaxed))
    }

    /// The verbs' numbers.
    #[must_use]
    pub const fn verbs(&self) -> &Verbs {
        &self.verbs
    }

    /// What happens from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<StoreEvent> {
        self.events.subscribe()
    }

    /// Tells watchers, if there are any; the event is not even made otherwise.
    fn tell(&self, event: impl FnOnce() -> StoreEvent) {
        if self.events.receiver_count() > 0 {
            // No receiver left since the look is fine.
            let _ = self.events.send(event());
        }
    }
}

/// A span in the trace of each task that a claim took, for who records traces.
fn told_of(claim: &Claim, took: Duration) {
    if !tracing::span_enabled!(target: "gristmill::task", tracing::Level::INFO) {
        return;
    }
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    for task in &claim.tasks {
        let Some(traceparent) = task.headers.get("traceparent") else { continue };
        let (queue, id) = (&claim.queue, task.id);
        // It has ended as it is told of.
        drop(tracing::info_span!(
            target: "gristmill::task", "receive", %queue, %id, traceparent, took_us
        ));
    }
}

/// Calls a verb of the inner store within its span, and counts it.
macro_rules! observe {
    ($self:ident . $verb:ident ( $($arg:expr),* ) $(, $field:ident = $value:expr)*) => {{
        let span = debug_span!(target: "gristmill::store", stringify!($verb) $(, $field = %$value)*);
        let start = Instant::now();
        let answer = $self.inner.$verb($($arg),*).instrument(span).await;
        $self.verbs.$verb.count(start.elapsed(), answer.is_err());
        if let Err(error) = &answer {
            tracing::debug!(target: "gristmill::store", verb = stringify!($verb), error = %error.whole(), "failed");
        }
        answer
    }};
}

/// What a call of a verb becomes: those that somebody is told of have a function of
/// their own below.
macro_rules! observed {
    (now $self:ident.$verb:ident()) => { $self.inner.$verb() };
    ($self:ident.put($($given:ident),*)) => { $self.told_put($($given),*).await };
    ($self:ident.claim($($given:ident),*)) => { $self.told_claim($($given),*).await };
    ($self:ident.settle($($given:ident),*)) => { $self.told_settle($($given),*).await };
    ($self:ident.reclaim($($given:ident),*)) => { $self.told_reclaim($($given),*).await };
    ($self:ident.sweep($($given:ident),*)) => { $self.told_sweep($($given),*).await };
    ($self:ident.operate($($given:ident),*)) => { $self.told_operate($($given),*).await };
    ($self:ident.import($($given:ident),*)) => { $self.told_import($($given),*).await };
    ($self:ident.declare_queue($($given:ident),*)) => { $self.told_declare_queue($($given),*).await };
    ($self:ident.override_queue($($given:ident),*)) => { $self.told_override_queue($($given),*).await };
    ($self:ident.reset_queue($($given:ident),*)) => { $self.told_reset_queue($($given),*).await };
    ($self:ident.pause_queue($($given:ident),*)) => { $self.told_pause_queue($($given),*).await };
    ($self:ident.declare_schedule($($given:ident),*)) => { $self.told_declare_schedule($($given),*).await };
    ($self:ident.remove_schedule($($given:ident),*)) => { $self.told_remove_schedule($($given),*).await };
    ($self:ident.pause_schedule($($given:ident),*)) => { $self.told_pause_schedule($($given),*).await };
    ($self:ident.fire($($given:ident),*)) => { $self.told_fire($($given),*).await };
    ($self:ident.reach()) => { $self.inner.reach().await };
    ($self:ident.get($id:ident)) => { observe!($self.get($id), id = $id) };
    ($self:ident.find($queue:ident, $keys:ident)) => {
        observe!($self.find($queue, $keys), queue = $queue)
    };
    ($self:ident.minutes($queue:ident, $back:ident)) => {
        observe!($self.minutes($queue, $back), queue = $queue)
    };
    ($self:ident.$verb:ident($($given:ident),*)) => { observe!($self.$verb($($given),*)) };
}

crate::delegate_store!(Observed, observed);

impl Observed {
    async fn told_put(&self, request: PutRequest) -> Result<PutReport> {
        let queue = request.queue.clone();
        let report = observe!(self.put(request), queue = queue)?;
        let (enqueued, duplicates) = (report.enqueued(), report.duplicates());
        let refused =
            report.answers.iter().filter(|a| matches!(a, crate::PutAnswer::Refused(_))).count();
        self.tell(|| StoreEvent::Put { queue, enqueued, duplicates, refused });
        Ok(report)
    }

    async fn told_claim(&self, request: ClaimRequest) -> Result<Claim> {
        let (queue, worker) = (request.queue.clone(), request.worker.clone());
        let start = Instant::now();
        let claim = observe!(self.claim(request), queue = queue)?;
        told_of(&claim, start.elapsed());
        if !claim.tasks.is_empty() {
            let tasks = claim.tasks.iter().map(|task| task.id);
            self.tell(|| StoreEvent::Claimed { queue, worker, tasks: tasks.collect() });
        }
        Ok(claim)
    }

    async fn told_settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        let ids: Vec<TaskId> = settlements.iter().map(|settlement| settlement.id).collect();
        let answers = observe!(self.settle(settlements))?;
        for (id, answer) in ids.into_iter().zip(&answers) {
            self.tell(|| StoreEvent::Settled { id, answer: answer.clone() });
        }
        Ok(answers)
    }

    async fn told_reclaim(&self) -> Result<u64> {
        let reclaimed = observe!(self.reclaim())?;
        if reclaimed > 0 {
            let report = SweepReport { reclaimed, ..SweepReport::default() };
            self.tell(|| StoreEvent::Swept { report });
        }
        Ok(reclaimed)
    }

    async fn told_sweep(&self) -> Result<SweepReport> {
        let report = observe!(self.sweep())?;
        if let Some(open) = report.oldest_transaction {
            let micros = u64::try_from(open.as_micros()).unwrap_or(u64::MAX);
            self.oldest_transaction.store(micros, Ordering::Relaxed);
        }
        if !report.is_idle() {
            self.tell(|| StoreEvent::Swept { report: report.clone() });
        }
        Ok(report)
    }

    async fn told_operate(&self, operation: Operation) -> Result<OperationReport> {
        let report = observe!(self.operate(operation.clone()))?;
        let moved = report.moved();
        self.tell(|| StoreEvent::Operated { operation, moved });
        Ok(report)
    }

    async fn told_import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        let queue = import.queue.clone();
        let answers = observe!(self.import(import), queue = queue)?;
        let count =
            |wanted: fn(&ImportAnswer) -> bool| answers.iter().filter(|a| wanted(a)).count();
        let enqueued = count(|a| matches!(a, ImportAnswer::Imported { .. }));
        let refused = count(|a| matches!(a, ImportAnswer::Refused(_)));
        let duplicates = answers.len() - enqueued - refused;
        self.tell(|| StoreEvent::Put { queue, enqueued, duplicates, refused });
        Ok(answers)
    }

    async fn told_declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        let queue = declaration.name.clone();
        let declared = observe!(self.declare_queue(declaration), queue = queue)?;
        self.log_changes(&declared);
        Ok(declared)
    }

    async fn told_override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let declared = observe!(self.override_queue(queue, settings, by), queue = queue)?;
        self.log_changes(&declared);
        Ok(declared)
    }

    async fn told_reset_queue(&self, queue: &QueueName, by: &str) -> Result<Declared> {
        let declared = observe!(self.reset_queue(queue, by), queue = queue)?;
        self.log_changes(&declared);
        Ok(declared)
    }

    async fn told_pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        observe!(self.pause_queue(queue, paused, by), queue = queue)?;
        self.tell(|| StoreEvent::QueueChanged { queue: queue.clone() });
        Ok(())
    }

    async fn told_declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        let schedule = declaration.name.clone();
        let declared = observe!(self.declare_schedule(declaration), schedule = schedule)?;
        self.tell(|| StoreEvent::ScheduleChanged { schedule });
        Ok(declared)
    }

    async fn told_remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        let removed = observe!(self.remove_schedule(name), schedule = name)?;
        self.tell(|| StoreEvent::ScheduleChanged { schedule: name.clone() });
        Ok(removed)
    }

    async fn told_pause_schedule(
        &self,
        name: &ScheduleName,
        paused: bool,
        by: &str,
    ) -> Result<bool> {
        let known = observe!(self.pause_schedule(name, paused, by), schedule = name)?;
        self.tell(|| StoreEvent::ScheduleChanged { schedule: name.clone() });
        Ok(known)
    }

    async fn told_fire(&self, fire: Fire) -> Result<FireAnswer> {
        let schedule = fire.schedule.clone();
        let answer = observe!(self.fire(fire), schedule = schedule)?;
        self.tell(|| StoreEvent::ScheduleChanged { schedule });
        Ok(answer)
    }

    fn log_changes(&self, declared: &Declared) {
        let queue = &declared.queue.name;
        for (setting, before, after) in &declared.changes {
            if !declared.created {
                tracing::info!(target: "gristmill::store", %queue, setting, before, after, "changed");
            }
        }
        self.tell(|| StoreEvent::QueueChanged { queue: queue.clone() });
    }
}
