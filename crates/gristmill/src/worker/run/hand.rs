//! The tasks of one claim on their way through a processor: waiting, running,
//! or given away. Shared by the runner, which calls the handler, and by its
//! overseer, which may take everything out of its hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{ClaimedTask, TaskId, WorkerId};

use crate::timer::Timer;
use crate::worker::claim::served::Served;
use crate::worker::handler::context::Context;
use crate::worker::heartbeat::lease::{Cancel, Lease};

/// What is claimed and not started within this time goes back.
const START_WITHIN: Duration = Duration::from_secs(2);
/// What waits is looked after at least this often, or as often as a handler may
/// take that blocks all threads of the runtime.
const TENDED: Duration = Duration::from_secs(5);

/// One claim.
pub(crate) struct Hand {
    pub(crate) served: Arc<Served>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) worker: WorkerId,
    /// The queue's, which holds for tasks that have none of their own.
    pub(crate) timeout: Duration,
    /// The longest of any task in it.
    longest: Duration,
    /// Whether the timeout is kept: time that a test owns passes for nobody.
    timed: bool,
    /// A task that may kill its worker: nothing else runs beside it.
    pub(crate) alone: bool,
    timer: Timer,
    claimed: Instant,
    state: Mutex<State>,
}

struct State {
    waiting: VecDeque<ClaimedTask>,
    running: Option<Running>,
    /// Which runner may go on; one that was given up finds another number.
    runner: u64,
}

struct Running {
    open: Vec<Context>,
    first: TaskId,
    since: Instant,
    /// How long it may take.
    timeout: Duration,
    /// When all of it was told to stop.
    told: Option<Instant>,
}

/// What the handler left open, and how long it ran.
pub(crate) struct Ran {
    pub(crate) open: Vec<Context>,
    pub(crate) took: Duration,
    /// It came back after its time.
    pub(crate) late: bool,
    /// Nothing waits behind it.
    pub(crate) last: bool,
}

impl Hand {
    pub(crate) fn new(
        served: Arc<Served>,
        lease: Arc<Lease>,
        worker: WorkerId,
        timer: Timer,
        (timeout, timed): (Duration, bool),
        tasks: Vec<ClaimedTask>,
    ) -> Self {
        let alone = tasks.iter().any(|task| task.alone);
        let own = tasks.iter().filter_map(|task| task.settings.timeout()).max();
        let longest = own.map_or(timeout, |own| own.max(timeout));
        let state = State { waiting: tasks.into(), running: None, runner: 0 };
        let (claimed, state) = (timer.now(), Mutex::new(state));
        let hand =
            Hand { served, lease, worker, timeout, longest, timed, alone, timer, claimed, state };
        hand.tended(claimed);
        hand
    }

    /// Somebody looks after what waits in it.
    pub(crate) fn tend(&self) {
        self.tended(self.timer.now());
    }

    fn tended(&self, now: Instant) {
        self.lease.tended_until(now + self.longest.max(TENDED));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self, task: ClaimedTask, now: Instant) -> Context {
        let (queue, worker) = (self.served.name.clone(), self.worker.clone());
        let timeout = task.settings.timeout().unwrap_or(self.timeout);
        let (lease, deadline) = (self.lease.clone(), now + timeout);
        Context::new(queue, worker, Arc::new(task), lease, (timeout, deadline))
    }

    fn is_over(&self, running: &Running, now: Instant) -> bool {
        self.timed && now.saturating_duration_since(running.since) >= running.timeout
    }

    /// Starts what comes next, for this runner: one task, or as many first
    /// attempts as there are. What came back before comes alone, so that one
    /// bad task does not spoil its batch for ever; so does what has a timeout of its
    /// own. Those that were cancelled while they waited are handed out beside, not
    /// started.
    pub(crate) fn begin(
        &self,
        runner: u64,
        many: bool,
    ) -> (Option<Vec<Context>>, Vec<(Context, Cancel)>) {
        let mut cancelled = Vec::new();
        let mut state = self.lock();
        if state.runner != runner {
            return (None, cancelled);
        }
        let since = self.timer.now();
        let mut open: Vec<Context> = Vec::new();
        while let Some(task) = state.waiting.front() {
            let single = !many || task.attempt > 1 || task.settings.timeout().is_some();
            if single && !open.is_empty() {
                break;
            }
            let Some(task) = state.waiting.pop_front() else { break };
            let context = self.context(task, since);
            if let Some(why) = self.lease.cancelled(context.id) {
                cancelled.push((context, why));
                continue;
            }
            open.push(context);
            if single {
                break;
            }
        }
        let Some((first, timeout)) = open.first().map(|context| (context.id, context.timeout))
        else {
            return (None, cancelled);
        };
        let started = open.clone();
        self.lease.runs_until(Some(since + timeout));
        state.running = Some(Running { open, first, since, timeout, told: None });
        if timeout < self.timeout {
            // The overseer means to look again when the queue's timeout has passed.
            self.lease.look_again();
        }
        (Some(started), cancelled)
    }

    /// Takes one running task out of the hand: its handler settles it itself.
    /// Says beside whether that comes after its time.
    pub(crate) fn take(&self, runner: u64, id: TaskId) -> Option<(Context, bool)> {
        let mut state = self.lock();
        if state.runner != runner {
            return None;
        }
        let running = state.running.as_mut()?;
        let late = self.is_over(running, self.timer.now());
        let at = running.open.iter().position(|context| context.id == id)?;
        Some((running.open.swap_remove(at), late))
    }

    /// The handler returned. Nothing if its runner was given up meanwhile.
    pub(crate) fn finish(&self, runner: u64) -> Option<Ran> {
        let mut state = self.lock();
        if state.runner != runner {
            return None;
        }
        let last = state.waiting.is_empty();
        let running = state.running.take()?;
        let now = self.timer.now();
        self.lease.runs_until(None);
        self.tended(now);
        let took = now.saturating_duration_since(running.since);
        let late = self.is_over(&running, now);
        Some(Ran { open: running.open, took, late, last })
    }

    /// Gives the runner up: what it says from now on is not heard. Returns
    /// what it had open, and the number of the next one.
    pub(crate) fn abandon(&self) -> (Vec<Context>, u64) {
        let mut state = self.lock();
        state.runner += 1;
        let open = state.running.take().map(|running| running.open).unwrap_or_default();
        self.lease.runs_until(None);
        self.tend();
        (open, state.runner)
    }

    /// Everything that has not started.
    pub(crate) fn take_waiting(&self) -> Vec<Context> {
        let waiting = std::mem::take(&mut self.lock().waiting);
        let now = self.timer.now();
        waiting.into_iter().map(|task| self.context(task, now)).collect()
    }

    /// Whether what waits has waited too long.
    pub(crate) fn is_late(&self) -> bool {
        !self.alone && self.timer.since(self.claimed) >= START_WITHIN
    }

    /// When what waits has waited too long.
    pub(crate) fn late_at(&self) -> Option<Instant> {
        (!self.alone && !self.lock().waiting.is_empty()).then(|| self.claimed + START_WITHIN)
    }

    /// Tells what runs to stop if its time is over, or `why` it should.
    /// Returns when to look again: at the timeout, or at the end of the grace
    /// of one that was told.
    pub(crate) fn watch(&self, why: Option<Cancel>, grace: Duration) -> Option<Instant> {
        let mut state = self.lock();
        let running = state.running.as_mut()?;
        let now = self.timer.now();
        let over = self.is_over(running, now);
        let why = why.or(over.then_some(Cancel::Timeout));
        if let Some(why) = why {
            // The first one as well when the handler settled it already: it
            // stands for the batch.
            let open = running.open.iter().map(|context| context.id);
            open.chain([running.first]).for_each(|id| self.lease.cancel(id, why));
        }
        // An operator's cancel of one task leaves a batch's others running.
        let all = !running.open.is_empty() && running.open.iter().all(Context::is_cancelled);
        if (all || why.is_some()) && running.told.is_none() {
            running.told = Some(now);
        }
        Some(running.told.map_or(running.since + running.timeout, |told| told + grace))
    }

    /// Whether what runs was told to stop, and its grace is over.
    pub(crate) fn is_ignoring(&self, grace: Duration) -> bool {
        let state = self.lock();
        let told = state.running.as_ref().and_then(|running| running.told);
        told.is_some_and(|told| self.timer.since(told) >= grace)
    }

    /// The tasks in it, and whether each runs.
    pub(crate) fn tasks(&self) -> Vec<(TaskId, bool)> {
        let state = self.lock();
        let running = state.running.iter().flat_map(|running| &running.open);
        let waiting = state.waiting.iter().map(|task| (task.id, false));
        running.map(|context| (context.id, true)).chain(waiting).collect()
    }

    /// Tasks that wait or run.
    pub(crate) fn holding(&self) -> usize {
        let state = self.lock();
        state.waiting.len() + state.running.as_ref().map_or(0, |running| running.open.len())
    }
}
