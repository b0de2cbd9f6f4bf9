//! What the parts of one worker share, and the claim that all of them make.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, ProcessorReport, Queue, QueueName, StoreError, TaskId, Token, WorkerId,
};
use tokio::sync::{Notify, RwLock, watch};
use tokio::task::AbortHandle;

use super::context::Context;
use super::hand::Hand;
use super::heartbeat;
use super::lease::Lease;
use super::report::{LateQueue, WorkReport};
use super::served::{Busy, Served};
use super::settler::{OnFailed, OnSettled, Settler};
use super::stop::{Phase, Stop};
use crate::Mill;
use crate::metrics::Running;
use crate::timer::Timer;

/// An operator's change of a queue is heard of within this time.
const QUEUES_FOR: Duration = Duration::from_secs(1);

pub(crate) type OnLate = Arc<dyn Fn(LateQueue<'_>) + Send + Sync>;

/// What can be changed while the worker runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Wish {
    pub(super) processors: usize,
    pub(super) batch: Option<usize>,
    /// The queue that a processor was moved to, by the processor's number.
    pub(super) moved: HashMap<usize, QueueName>,
    /// The queue that the manager wants a processor to serve.
    pub(super) assigned: HashMap<usize, QueueName>,
    /// The term of the manager that is followed.
    pub(super) follows: Option<u64>,
}

/// How the worker works, from its start to its end.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// The lease's length, instead of the queue's own.
    pub(super) lease: Option<Duration>,
    /// Only tasks of this source.
    pub(super) source: Option<String>,
    /// It ends when nothing is due and nothing runs.
    pub(super) drain: bool,
    /// How long a manager's word holds that is not renewed.
    pub(super) word_holds: Duration,
    /// A cycle longer than this is reported.
    pub(super) slow_cycle: Duration,
    /// Whether timeouts are kept: not where a test owns the time.
    pub(super) timed: bool,
}

/// Who hears of what.
pub(super) struct Told {
    pub(super) on_failed: Option<OnFailed>,
    pub(super) on_late: Option<OnLate>,
    pub(super) on_settled: Option<OnSettled>,
}

/// One worker.
pub(super) struct Site {
    pub(super) mill: Mill,
    pub(super) worker: WorkerId,
    pub(super) served: Vec<Arc<Served>>,
    pub(super) wish: watch::Sender<Wish>,
    pub(super) terms: Terms,
    pub(super) stop: Arc<Stop>,
    pub(super) timer: Timer,
    pub(super) heartbeat: heartbeat::Handle,
    pub(super) settler: Arc<Settler>,
    pub(super) on_late: Option<OnLate>,
    /// Held for reading by what runs, for writing by what must run alone.
    pub(super) gate: RwLock<()>,
    /// A task that must run alone is in hand: nothing else is claimed.
    alone: watch::Sender<bool>,
    /// Claims that were asked for and are not in hand yet: the store may have
    /// given their tasks to this worker already.
    claiming: AtomicUsize,
    /// Held by the one idle processor that looks for work in the rotation.
    pub(super) scout: tokio::sync::Mutex<()>,
    pub(super) idle: AtomicUsize,
    /// A place on a queue with a maximum is free again.
    pub(super) freed: Notify,
    known: Mutex<Option<Known>>,
    cycles: Mutex<HashMap<usize, Cycle>>,
    /// Handlers that did not come to an end and were left alone.
    alone_left: Mutex<Vec<LeftAlone>>,
}

/// A handler that was left alone.
struct LeftAlone {
    runner: AbortHandle,
    /// By the stop: whoever ends now should know of it.
    by_stop: bool,
    queue: QueueName,
    tasks: Vec<TaskId>,
}

/// The queues as they were read then.
struct Known {
    at: Instant,
    queues: HashMap<QueueName, Arc<Queue>>,
}

/// What a processor is at.
#[derive(Default)]
struct Cycle {
    post: Option<QueueName>,
    hand: Option<(Instant, Arc<Hand>)>,
}

/// A claim that took something.
pub(super) struct Found {
    pub(super) hand: Arc<Hand>,
    pub(super) one_at_a_time: bool,
    /// Others may wait for this place on the queue.
    pub(super) limited: bool,
    /// The processor's place on the queue while it has this claim.
    _busy: Busy,
}

/// A claim that is under way, until this is dropped.
struct Claiming<'a>(&'a AtomicUsize);

impl<'a> Claiming<'a> {
    fn new(claiming: &'a AtomicUsize) -> Self {
        claiming.fetch_add(1, Ordering::SeqCst);
        Claiming(claiming)
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a claim came to.
pub(super) struct Look {
    pub(super) found: Option<Found>,
    /// The queue allows no claim ahead.
    pub(super) skipped: bool,
    pub(super) next_due: Option<Duration>,
    /// How long leases that ran out are still spared.
    pub(super) held_back: Option<Duration>,
}

impl Site {
    #[expect(clippy::too_many_arguments, reason = "made in one place, from a worker's parts")]
    pub(super) fn new(
        mill: Mill,
        worker: WorkerId,
        served: Vec<Arc<Served>>,
        wish: Wish,
        terms: Terms,
        stop: Arc<Stop>,
        heartbeat: heartbeat::Handle,
        told: Told,
    ) -> Self {
        let Told { on_failed, on_late, on_settled } = told;
        let (outage, beats) = (mill.outage().clone(), heartbeat.clone());
        let settler =
            Arc::new(Settler::new(beats, outage, worker.clone(), (on_failed, on_settled)));
        Site {
            mill,
            worker,
            served,
            wish: watch::Sender::new(wish),
            terms,
            stop,
            settler,
            timer: heartbeat.timer().clone(),
            heartbeat,
            on_late,
            gate: RwLock::new(()),
            alone: watch::Sender::new(false),
            claiming: AtomicUsize::new(0),
            scout: tokio::sync::Mutex::new(()),
            idle: AtomicUsize::new(0),
            freed: Notify::new(),
            known: Mutex::default(),
            cycles: Mutex::default(),
            alone_left: Mutex::default(),
        }
    }

    /// A queue as the store has it, read again once a second at most.
    pub(super) async fn queue(&self, name: &QueueName) -> Result<Arc<Queue>, StoreError> {
        let unknown = || StoreError::UnknownQueue { name: name.to_string(), suggestion: None };
        if let Some(known) = &*lock(&self.known)
            && self.timer.since(known.at) < QUEUES_FOR
        {
            return known.queues.get(name).cloned().ok_or_else(unknown);
        }
        let queues = self.mill.store().queues().await?;
        let queues: HashMap<_, _> =
            queues.into_iter().map(|queue| (queue.name.clone(), Arc::new(queue))).collect();
        let queue = queues.get(name).cloned();
        *lock(&self.known) = Some(Known { at: self.timer.now(), queues });
        queue.ok_or_else(unknown)
    }

    /// A queue as it was last read, however long ago.
    pub(super) fn last_known(&self, name: &QueueName) -> Option<Arc<Queue>> {
        lock(&self.known).as_ref().and_then(|known| known.queues.get(name).cloned())
    }

    /// Claims from one queue. `ahead` is for a claim while another one runs,
    /// which queues with counts, slots or a single attempt do not allow.
    pub(super) async fn claim(
        &self,
        served: &Arc<Served>,
        ahead: bool,
    ) -> Result<Look, StoreError> {
        let nothing = Look { found: None, skipped: false, next_due: None, held_back: None };
        let queue = self.queue(&served.name).await?;
        let settings = &queue.settings;
        let one_at_a_time = settings.one_at_a_time();
        // Counted before the look: whoever goes alone after it waits for us.
        let _claiming = Claiming::new(&self.claiming);
        if !served.is_on() || self.is_someone_alone() {
            return Ok(nothing);
        }
        // Where a claim is the only attempt, a kill would use up what was
        // claimed ahead and never begun.
        if ahead && (one_at_a_time || settings.max_attempts == Some(1)) {
            return Ok(Look { skipped: true, ..nothing });
        }
        let Some(busy) = served.enter(settings.processors_max) else { return Ok(nothing) };
        let batch = self.wish.borrow().batch;
        let max = served.batch(batch, settings, self.idle.load(Ordering::Relaxed));
        let store = self.mill.store();
        let mut sent;
        let claim = loop {
            let request = ClaimRequest {
                queue: served.name.clone(),
                max,
                lease: self.terms.lease,
                worker: self.worker.clone(),
                source: self.terms.source.clone(),
                token: Token::random()?,
            };
            sent = self.heartbeat.clock();
            let claim = store.claim(request).await?;
            self.heartbeat.note_failed(&claim.failed);
            // Those it took cannot be read and have failed: not nothing, but
            // nothing to hand out. What stands behind them may be due.
            let again = claim.tasks.is_empty() && !claim.failed.is_empty();
            if !again || self.stop.is_asked() {
                break claim;
            }
        };
        let token = claim.token;
        served.claimed(max, claim.tasks.len(), store.limits().claim_tasks);
        if claim.tasks.is_empty() {
            let (next_due, held_back) = (claim.next_due, claim.held_back);
            return Ok(Look { next_due, held_back, ..nothing });
        }
        let lease = Arc::new(Lease::new(self.mill.clone(), token, claim.tasks.len()));
        self.heartbeat.hold(&lease, claim.lease, sent);
        let worker = self.worker.clone();
        let timeout = (settings.timeout, self.terms.timed);
        let timer = self.timer.clone();
        let hand = Hand::new(served.clone(), lease, worker, timer, timeout, claim.tasks);
        let limited = settings.processors_max.is_some();
        let found = Found { hand: Arc::new(hand), one_at_a_time, limited, _busy: busy };
        Ok(Look { found: Some(found), ..nothing })
    }

    /// From now on, until what is returned is dropped, nothing is claimed and
    /// nothing new begins. None when another task has this right.
    pub(super) fn go_alone(self: &Arc<Self>) -> Option<Alone> {
        let first = self.alone.send_if_modified(|alone| !std::mem::replace(alone, true));
        first.then(|| Alone(self.clone()))
    }

    pub(super) fn is_someone_alone(&self) -> bool {
        *self.alone.borrow()
    }

    /// Whether a claim is under way: what it takes is as good as held.
    pub(super) fn is_claiming(&self) -> bool {
        self.claiming.load(Ordering::SeqCst) > 0
    }

    /// Returns when a task is in hand that must run alone.
    pub(super) async fn someone_alone(&self) {
        let _ = self.alone.subscribe().wait_for(|alone| *alone).await;
    }

    /// Gives back what has not started.
    pub(super) fn give_back(&self, hand: &Hand) {
        for context in hand.take_waiting() {
            self.settler.give_back(hand, context);
        }
    }

    /// A handler did not come to an end: nobody waits for it any more.
    pub(super) fn leave_alone(&self, hand: &Hand, runner: AbortHandle, open: &[Context]) {
        let mut left = lock(&self.alone_left);
        left.retain(|left| left.by_stop || !left.runner.is_finished());
        left.push(LeftAlone {
            runner,
            by_stop: self.stop.phase() >= Phase::Cancels,
            queue: hand.served.name.clone(),
            tasks: open.iter().map(|context| context.id).collect(),
        });
    }

    /// What was done, and what is left as the worker ends now.
    pub(super) fn report(&self) -> WorkReport {
        let mut left = self.settler.unsettled();
        for cycle in lock(&self.cycles).values() {
            let Some((_, hand)) = &cycle.hand else { continue };
            for (id, running) in hand.tasks() {
                let queue = &hand.served.name;
                if running { left.running(queue, id) } else { left.unsettled(queue, id) }
            }
        }
        for alone in lock(&self.alone_left).iter() {
            if alone.by_stop || !alone.runner.is_finished() {
                alone.tasks.iter().for_each(|id| left.running(&alone.queue, *id));
            }
        }
        WorkReport { left, ..self.settler.report() }
    }

    /// A processor began or ended a cycle.
    pub(super) fn cycle(&self, number: usize, hand: Option<&Arc<Hand>>) {
        lock(&self.cycles).entry(number).or_default().hand =
            hand.map(|hand| (self.timer.now(), hand.clone()));
    }

    /// A processor serves only this queue, or rotates.
    pub(super) fn posted(&self, number: usize, post: Option<QueueName>) {
        lock(&self.cycles).entry(number).or_default().post = post;
    }

    /// A processor ended.
    pub(super) fn left(&self, number: usize) {
        lock(&self.cycles).remove(&number);
    }

    /// What each processor is at.
    pub(super) fn processors(&self) -> Vec<ProcessorReport> {
        let mut cycles: Vec<_> = lock(&self.cycles)
            .iter()
            .map(|(number, cycle)| {
                let hand = cycle.hand.as_ref();
                let holding = hand.map_or(0, |(_, hand)| hand.holding());
                let report = ProcessorReport {
                    queue: cycle.post.clone(),
                    holding: u32::try_from(holding).unwrap_or(u32::MAX),
                    cycle: hand.map_or(Duration::ZERO, |(since, _)| self.timer.since(*since)),
                };
                (*number, report)
            })
            .collect();
        cycles.sort_by_key(|(number, _)| *number);
        cycles.into_iter().map(|(_, report)| report).collect()
    }
}

impl Running for Site {
    fn processors(&self) -> usize {
        lock(&self.cycles).len()
    }

    fn in_progress(&self) -> Vec<(u32, QueueName, u64)> {
        let hands: Vec<Arc<Hand>> = {
            let cycles = lock(&self.cycles);
            cycles.values().filter_map(|cycle| Some(cycle.hand.as_ref()?.1.clone())).collect()
        };
        let counted = |hand: &Arc<Hand>| {
            let queue = self.last_known(&hand.served.name)?;
            Some((queue.number, hand.served.name.clone(), hand.holding() as u64))
        };
        hands.iter().filter_map(counted).collect()
    }

    fn oldest_transaction(&self) -> Option<Duration> {
        self.heartbeat.oldest_transaction()
    }
}

/// The right to run alone.
pub(super) struct Alone(Arc<Site>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.alone.send_replace(false);
        // Whoever found nothing meanwhile looks again.
        self.0.wish.send_modify(|_| {});
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
