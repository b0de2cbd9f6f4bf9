//! The one thread of a handle that touches the folder: it gathers what was
//! asked meanwhile, takes the lock, catches up with other processes, runs the
//! verbs, writes one frame for all of them, and answers.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use gristmill_core::{
    Bell, Clock, Crowd, Limits, Result, Signs, StoreError, Timestamp, WakeSignal,
};

use crate::ask::{Ask, Desk, Order};
use crate::held::Held;
use crate::intent::Keep;
use crate::load::{Opener, load};
use crate::lock::{self, Lock};
use crate::persist::{Sync, Unwritten};
use crate::spool::Spool;
use crate::under_way::UnderWay;

/// A process that wrote within this time is given way to.
const SHARED: Duration = Duration::from_secs(1);
/// What a relaxed queue wrote is safe from a power cut after this.
const RELAXED: Duration = Duration::from_millis(900);

/// What the keeper needs to know.
pub(crate) struct Setup {
    pub(crate) spool: Spool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) group: usize,
    pub(crate) busy_timeout: Duration,
    pub(crate) look: Duration,
    pub(crate) intent_bytes: u64,
    pub(crate) wake: Arc<WakeSignal>,
    /// Tells other processes.
    pub(crate) bell: Bell,
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) signs: Signs,
    pub(crate) crowd: Arc<Crowd>,
}

/// The thread's own things.
pub(crate) struct Keeper {
    pub(crate) setup: Setup,
    pub(crate) lock: Lock,
    /// Locked, shared, as long as this handle is open.
    pub(crate) present: File,
    /// Nothing after an error: then the folder is read anew.
    pub(crate) held: Option<Held>,
    /// A checkpoint that a thread is working on.
    under_way: Option<UnderWay>,
    /// Since when something of a relaxed queue is not synced.
    unsynced: Option<Instant>,
    /// When another process was last seen writing.
    shared: Option<Instant>,
    /// When we last gave the lock back.
    freed: Instant,
    /// The end was asked for while a group was gathered.
    closing: bool,
    /// The lock was not free within the time for it.
    locked_out: bool,
}

/// Why a group has no outcomes.
enum Broken {
    /// One of it may be to blame: each is run by itself.
    Group(StoreError),
    /// No better result can be had.
    Whole(StoreError),
}

impl Keeper {
    pub(crate) fn new(setup: Setup, lock: Lock, present: File, held: Held) -> Self {
        let unsynced = held.any_relaxed().then(Instant::now);
        Keeper {
            setup,
            lock,
            present,
            held: Some(held),
            under_way: None,
            unsynced,
            shared: None,
            freed: Instant::now(),
            closing: false,
            locked_out: false,
        }
    }

    /// Serves until the store is closed or dropped.
    pub(crate) fn serve(mut self, orders: &Receiver<Order>) {
        while let Some(group) = self.gather(orders) {
            self.setup.signs.give();
            if !group.is_empty() {
                self.run(group);
            }
            if self.unsynced.is_some_and(|since| since.elapsed() >= RELAXED) {
                self.sync_now();
            }
            self.setup.signs.end(!self.locked_out);
        }
        self.setup.signs.give();
        self.sync_now();
        self.leave();
        self.setup.signs.end(true);
    }

    /// What was asked since the last group. Nothing at all means the end.
    fn gather(&mut self, orders: &Receiver<Order>) -> Option<Vec<Box<dyn Ask>>> {
        if self.closing {
            return None;
        }
        let first = match self.patience() {
            None => orders.recv().ok(),
            Some(patience) => match orders.recv_timeout(patience) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => Some(Order::Look),
                Err(RecvTimeoutError::Disconnected) => None,
            },
        }?;
        let mut group = Vec::new();
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                Order::Ask(ask) => group.push(ask),
                Order::Look => self.look(),
                // What came before it in the group is done first.
                Order::Close if group.is_empty() => return None,
                Order::Close => {
                    self.closing = true;
                    break;
                }
            }
            next = if group.len() < self.setup.group { orders.try_recv().ok() } else { None };
        }
        Some(group)
    }

    /// How long to wait for the next request before something is due.
    fn patience(&self) -> Option<Duration> {
        let look = (self.setup.waiting.load(Ordering::Acquire) > 0).then_some(self.setup.look);
        let sync = self.unsynced.map(|since| RELAXED.saturating_sub(since.elapsed()));
        [look, sync].into_iter().flatten().min()
    }

    /// Wakes who waits when another process has written.
    fn look(&mut self) {
        let behind = self.held.as_ref().is_none_or(|held| held.intent.is_behind().unwrap_or(true));
        if behind || self.setup.spool.in_place().is_err() {
            // Whoever is woken asks, and then it is read.
            self.setup.wake.wake_all();
        }
    }

    fn run(&mut self, mut group: Vec<Box<dyn Ask>>) {
        let turn = self.turn(&mut group);
        self.freed = Instant::now();
        match turn {
            Ok(outcomes) => {
                for (ask, outcome) in group.into_iter().zip(outcomes) {
                    ask.answer(outcome);
                }
            }
            Err(Broken::Group(_)) if group.len() > 1 => {
                for ask in group {
                    self.run(vec![ask]);
                }
            }
            Err(Broken::Group(StoreError::DiskFull(_))) if self.make_room() => {
                let outcome = match self.turn(&mut group) {
                    Ok(outcomes) => outcomes.into_iter().next().unwrap_or(Ok(())),
                    Err(Broken::Group(error) | Broken::Whole(error)) => Err(error),
                };
                for ask in group {
                    ask.answer(outcome.clone());
                }
            }
            Err(Broken::Group(error) | Broken::Whole(error)) => {
                for ask in group {
                    ask.answer(Err(error.clone()));
                }
            }
        }
    }

    /// One turn under the lock. Each outcome is true once this returns.
    fn turn(&mut self, group: &mut [Box<dyn Ask>]) -> std::result::Result<Vec<Result<()>>, Broken> {
        if self.shared.is_some_and(|since| since.elapsed() < SHARED) {
            lock::give_way(self.freed);
        }
        let turn = self.lock.take(&self.setup.spool, self.setup.busy_timeout);
        self.locked_out = matches!(turn, Err(StoreError::Busy(_)));
        let turn = turn.map_err(Broken::Whole)?;
        self.setup.signs.give();
        // Who asked before the last turn's answers were given did not wait for those.
        if turn.crowded || group.len() > 1 || group.iter().any(|ask| ask.asked() < self.freed) {
            self.setup.crowd.saw();
        }
        let began = Instant::now();
        let clock = &self.setup.clock;
        let (mut held, others) = take_up(&self.setup, self.held.take()).map_err(Broken::Whole)?;
        if others {
            self.shared = Some(Instant::now());
            self.setup.crowd.saw();
            // Who wrote it may be gone before its second is over.
            if held.any_relaxed() {
                self.unsynced.get_or_insert_with(Instant::now);
            }
            self.setup.wake.wake_all();
        }
        let now = clock.now();
        held.heal(now).map_err(Broken::Whole)?;
        held.ledger.observe(&**clock, turn.waited);
        let mut desk = Desk { held: &mut held, now, least: Sync::Light, broken: false, puts: 0 };
        let mut outcomes = Vec::with_capacity(group.len());
        for ask in group.iter_mut() {
            let outcome = ask.run(&mut desk);
            self.setup.signs.give();
            if let (true, Err(error)) = (desk.broken, &outcome) {
                return Err(Broken::Group(error.clone()));
            }
            outcomes.push(outcome);
        }
        let (least, puts) = (desk.least, desk.puts);
        let draft = held.draft(&**clock, now).map_err(Broken::Group)?;
        match held.write(&draft, least) {
            Ok(Sync::Full) => self.unsynced = None,
            Ok(Sync::Relaxed) => {
                self.unsynced.get_or_insert_with(Instant::now);
            }
            Ok(Sync::Light) => {}
            // What memory says is not so: the folder is read anew.
            Err(Unwritten::Nothing(error)) => return Err(Broken::Group(error)),
            Err(Unwritten::Unknown(error)) => return Err(Broken::Whole(error)),
        }
        let synced = held.synced;
        if puts > 0 && !synced.is_zero() {
            self.setup.crowd.measure(puts, began.elapsed().saturating_sub(synced), synced);
        }
        if let Err(error) = step_checkpoint(&self.setup, &mut self.under_way, &mut held, now) {
            tracing::warn!(error = %error.whole(), "no checkpoint could be made");
        }
        let (woken, ended) = (held.ledger.take_woken(), held.ledger.take_ended());
        // A checkpoint that failed midway leaves something to be finished: the
        // next turn reads the folder anew and does it.
        if held.unapplied || held.intent.is_finished() {
            self.held = Some(held);
        }
        drop(turn);
        self.setup.wake.wake(&woken);
        if ended {
            self.setup.wake.wake_ended();
        }
        if ended || !woken.is_empty() {
            self.setup.bell.ring();
        }
        Ok(outcomes)
    }

    /// Gives back the room that the intent takes; returns whether it could.
    fn make_room(&mut self) -> bool {
        let given_up = self.under_way.take().map(UnderWay::give_up);
        let made = self.with_folder(|held, now| {
            if let Some(given_up) = given_up {
                given_up.hand_over(held);
            }
            held.checkpoint(now, Keep::None)
        });
        if let Err(error) = &made {
            tracing::warn!(error = %error.whole(), "no room could be made");
        }
        made.is_ok()
    }

    fn with_folder<T>(
        &mut self,
        work: impl FnOnce(&mut Held, Timestamp) -> Result<T>,
    ) -> Result<T> {
        let turn = self.lock.take(&self.setup.spool, self.setup.busy_timeout)?;
        let (mut held, _) = take_up(&self.setup, self.held.take())?;
        let done = work(&mut held, self.setup.clock.now())?;
        self.held = Some(held);
        drop(turn);
        Ok(done)
    }

    fn sync_now(&mut self) {
        if self.unsynced.take().is_some()
            && let Some(held) = &mut self.held
            && let Err(error) = held.intent.sync()
        {
            tracing::error!(error = %error.whole(), "what relaxed queues wrote could not be synced");
            // It stands in memory only: a checkpoint makes it durable.
            let healed = self.with_folder(|held, now| {
                held.intent.set_unfinished()?;
                held.suspect = true;
                held.heal(now)
            });
            if let Err(error) = healed {
                tracing::error!(error = %error.whole(), "nor could it be written anew yet");
            }
        }
    }

    /// The last to leave makes a checkpoint, so that the folder stands for
    /// itself: a person may then change it by hand.
    fn leave(&mut self) {
        let given_up = self.under_way.take().map(UnderWay::give_up);
        let left = self.lock.take(&self.setup.spool, self.setup.busy_timeout).and_then(|turn| {
            if self.present.try_lock().is_ok()
                && let Ok((mut held, _)) = take_up(&self.setup, self.held.take())
                && held.intent.position().offset > 0
            {
                if let Some(given_up) = given_up {
                    given_up.hand_over(&mut held);
                }
                held.checkpoint(self.setup.clock.now(), Keep::None)?;
            }
            drop(turn);
            Ok(())
        });
        if let Err(error) = left {
            tracing::debug!(error = %error.whole(), "the folder was left without a checkpoint");
        }
    }
}

/// What is known of the folder, up to date; and whether others wrote.
fn take_up(setup: &Setup, held: Option<Held>) -> Result<(Held, bool)> {
    let now = setup.clock.now();
    if let Some(mut held) = held {
        match held.catch_up(now) {
            Ok(others) => return Ok((held, others)),
            // A segment that is gone: too much happened meanwhile.
            Err(error) => tracing::info!(error = %error.whole(), "reading the whole folder again"),
        }
    }
    let held = load(&setup.spool, &setup.limits, Opener::Another, now)?;
    Ok((held, true))
}

/// A checkpoint in steps, and others have their turns in between.
fn step_checkpoint(
    setup: &Setup,
    under_way: &mut Option<UnderWay>,
    held: &mut Held,
    now: Timestamp,
) -> Result<()> {
    if let Some(known) = under_way.take() {
        *under_way = known.go_on(held, now)?;
        return Ok(());
    }
    if held.intent.position().offset <= setup.intent_bytes {
        return Ok(());
    }
    if held.touched.few().is_some() || cfg!(not(target_os = "linux")) {
        return held.checkpoint(now, Keep::Few);
    }
    *under_way = Some(UnderWay::begin(held, setup.intent_bytes)?);
    Ok(())
}
