//! What the parts of one worker share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use gristmill_core::{QueueName, WorkerId};
use tokio::sync::{Notify, watch};

use crate::Mill;
use crate::metrics::Running;
use crate::timer::Timer;
use crate::worker::claim::gate::Gate;
use crate::worker::claim::queues::Queues;
use crate::worker::claim::served::Served;
use crate::worker::control::abandoned::Abandoned;
use crate::worker::control::cycles::Cycles;
use crate::worker::control::orders::Orders;
use crate::worker::control::report::{LateQueue, WorkReport};
use crate::worker::control::stop::Stop;
use crate::worker::heartbeat;
use crate::worker::run::hand::Hand;
use crate::worker::settle::settler::{OnFailed, OnSettled, Settler};

pub(crate) type OnLate = Arc<dyn Fn(LateQueue<'_>) + Send + Sync>;

/// What can be changed while the worker runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) processors: usize,
    pub(crate) batch: Option<usize>,
    /// The queue that a processor was moved to, by the processor's number.
    pub(crate) moved: HashMap<usize, QueueName>,
    /// What somebody elsewhere wants of it.
    pub(crate) orders: Orders,
    /// The queue that the manager wants a processor to serve.
    pub(crate) assigned: HashMap<usize, QueueName>,
    /// The term of the manager that is followed.
    pub(crate) follows: Option<u64>,
}

impl Wish {
    /// How many processors are to run now.
    pub(crate) const fn running(&self) -> usize {
        if self.orders.quiet { 0 } else { self.processors }
    }

    /// The queue that a processor was moved to, here or from elsewhere.
    pub(crate) fn moved_to(&self, number: usize) -> Option<&QueueName> {
        self.moved.get(&number).or_else(|| self.orders.moved.get(&number))
    }
}

/// How the worker works, from its start to its end.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// The lease's length, instead of the queue's own.
    pub(crate) lease: Option<Duration>,
    /// Only tasks of this source.
    pub(crate) source: Option<String>,
    /// It ends when nothing is due and nothing runs.
    pub(crate) drain: bool,
    /// How long a manager's word holds that is not renewed.
    pub(crate) word_holds: Duration,
    /// A cycle longer than this is reported.
    pub(crate) slow_cycle: Duration,
    /// Whether timeouts are kept: not where a test owns the time.
    pub(crate) timed: bool,
}

/// Who hears of what.
pub(crate) struct Told {
    pub(crate) on_failed: Option<OnFailed>,
    pub(crate) on_late: Option<OnLate>,
    pub(crate) on_settled: Option<OnSettled>,
}

/// One worker.
pub(crate) struct Shared {
    pub(crate) mill: Mill,
    pub(crate) worker: WorkerId,
    pub(crate) served: Vec<Arc<Served>>,
    pub(crate) queues: Queues,
    pub(crate) wish: watch::Sender<Wish>,
    pub(crate) terms: Terms,
    pub(crate) stop: Arc<Stop>,
    pub(crate) timer: Timer,
    pub(crate) heartbeat: heartbeat::Handle,
    pub(crate) settler: Arc<Settler>,
    pub(crate) on_late: Option<OnLate>,
    /// Who runs beside others, and who alone.
    pub(crate) gate: Arc<Gate>,
    /// What each processor is at.
    pub(crate) cycles: Cycles,
    /// Handlers that did not come to an end.
    pub(crate) abandoned: Abandoned,
    /// Held by the one idle processor that looks for work in the rotation.
    pub(crate) scout: tokio::sync::Mutex<()>,
    pub(crate) idle: AtomicUsize,
    /// A place on a queue with a maximum is free again.
    pub(crate) freed: Notify,
}

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "made in one place, from a worker's parts")]
    pub(crate) fn new(
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
        let wish = watch::Sender::new(wish);
        let timer = heartbeat.timer().clone();
        Shared {
            queues: Queues::new(mill.clone(), timer.clone()),
            gate: Arc::new(Gate::new(wish.clone())),
            cycles: Cycles::new(timer.clone()),
            abandoned: Abandoned::default(),
            mill,
            worker,
            served,
            wish,
            terms,
            stop,
            settler,
            timer,
            heartbeat,
            on_late,
            scout: tokio::sync::Mutex::new(()),
            idle: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Gives back what has not started.
    pub(crate) fn give_back(&self, hand: &Hand) {
        for context in hand.take_waiting() {
            self.settler.give_back(hand, context);
        }
    }

    /// What was done, and what is left as the worker ends now.
    pub(crate) fn report(&self) -> WorkReport {
        let mut left = self.settler.unsettled();
        for hand in self.cycles.hands() {
            for (id, running) in hand.tasks() {
                let queue = &hand.served.name;
                if running { left.running(queue, id) } else { left.unsettled(queue, id) }
            }
        }
        self.abandoned.tell(&mut left);
        WorkReport { left, ..self.settler.report() }
    }
}

impl Running for Shared {
    fn processors(&self) -> usize {
        self.cycles.count()
    }

    fn in_progress(&self) -> Vec<(u32, QueueName, u64)> {
        let counted = |hand: Arc<Hand>| {
            let queue = self.queues.last(&hand.served.name)?;
            Some((queue.number, hand.served.name.clone(), hand.holding() as u64))
        };
        self.cycles.hands().into_iter().filter_map(counted).collect()
    }

    fn oldest_transaction(&self) -> Option<Duration> {
        self.heartbeat.oldest_transaction()
    }
}
