//! The heartbeat: a thread of its own that extends every open lease, sweeps the
//! store, ends leases that were not extended in time, and keeps the time of a
//! stop.
//!
//! Handlers that block every thread of the runtime cannot starve it: it has
//! its own small runtime, and the store answers it from the store's thread. It
//! writes no line itself: a log that nobody reads must not hold it up.

pub(crate) mod beat;
pub(crate) mod lease;
mod news;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use gristmill_core::policy::reclaim_guard::heartbeat as interval;
use gristmill_core::{StoreError, TaskId, Token};
use tokio::sync::{Notify, watch};

use crate::Mill;
use crate::timer::Timer;
use crate::worker::control::stop::Stop;
use crate::worker::heartbeat::lease::Lease;

/// How long the end waits for the thread.
const FAREWELL: Duration = Duration::from_secs(1);
/// A store that was asked every second and is silent for this long is away.
const AWAY: Duration = Duration::from_millis(1_800);

/// One open lease. Weak, so that it is extended only while someone works on
/// it: a processor that ended badly must not keep its tasks for ever.
pub(crate) struct Held {
    pub(crate) lease: Weak<Lease>,
    pub(crate) length: Duration,
    pub(crate) next: Instant,
    /// When the claim or the last extension that the store confirmed was sent:
    /// what the store counts the lease from is not earlier.
    pub(crate) sent: Duration,
    /// It was told that it is not worth extending.
    pub(crate) told: bool,
    /// The store did not extend it at the last try.
    pub(crate) failing: bool,
}

#[derive(Default)]
pub(crate) struct Beats {
    pub(crate) held: HashMap<Token, Held>,
    /// When the store may be told again how far tasks are.
    pub(crate) tells: Option<Instant>,
    /// When the thread looks next by itself.
    pub(crate) until: Option<Instant>,
}

/// What happened on the thread, to be told of elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A lease's time passed without a word from the store.
    RanOut { open: usize },
    /// A handler is past its time, and nobody looks after it.
    NotWorthExtending { open: usize },
}

pub(crate) struct Shared {
    pub(crate) beats: Mutex<Beats>,
    pub(crate) changed: Notify,
    /// A lease was taken up that may run out before the next look.
    pub(crate) shorter: Notify,
    pub(crate) timer: Timer,
    /// When the store last answered.
    answered: Mutex<Option<Instant>>,
    /// Tasks that failed for good by their last lease's end, as a sweep or a
    /// claim of this worker noticed; nobody was told yet.
    failed: Mutex<Vec<TaskId>>,
    /// What the last sweep said of others' transactions.
    oldest_transaction: Mutex<Option<Duration>>,
    events: Mutex<Vec<Event>>,
}

impl Shared {
    fn new(timer: Timer) -> Self {
        Shared {
            beats: Mutex::default(),
            changed: Notify::new(),
            shorter: Notify::new(),
            timer,
            answered: Mutex::default(),
            failed: Mutex::default(),
            oldest_transaction: Mutex::default(),
            events: Mutex::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Beats> {
        lock(&self.beats)
    }

    pub(crate) fn note_failed(&self, ids: &[TaskId]) {
        lock(&self.failed).extend(ids);
    }

    pub(crate) fn note_oldest(&self, open: Option<Duration>) {
        *lock(&self.oldest_transaction) = open;
    }

    pub(crate) fn note(&self, event: Event) {
        lock(&self.events).push(event);
    }

    pub(crate) fn answered(&self) {
        *lock(&self.answered) = Some(self.timer.now());
    }

    /// What the lease's clock says: it goes on while the machine sleeps.
    pub(crate) fn clock(&self) -> Duration {
        self.timer.clock().awake_or_asleep()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread.
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    end: watch::Sender<bool>,
    ended: watch::Receiver<()>,
    stop: Arc<Stop>,
}

impl Heartbeat {
    pub(crate) fn start(mill: &Mill, timer: Timer, stop: Arc<Stop>) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::new(timer));
        let end = watch::Sender::new(false);
        let (lives, ended) = watch::channel(());
        let beats = beat::beat(mill.clone(), shared.clone(), stop.clone(), end.subscribe());
        // A store may open a connection of this runtime's own.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| StoreError::unavailable("no runtime for the heartbeat").caused_by(e))?;
        std::thread::Builder::new()
            .name("gristmill-heartbeat".to_owned())
            .spawn(move || {
                runtime.block_on(beats);
                drop(lives);
            })
            .map_err(|e| StoreError::unavailable("no thread for the heartbeat").caused_by(e))?;
        Ok(Heartbeat { shared, end, ended, stop })
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Ends the thread; all leases are settled or given back by now. One that
    /// waits for a store that is away is not waited for, nor joined: it ends with
    /// the process.
    pub(crate) async fn end(mut self) {
        self.end.send_replace(true);
        let _ = self.stop.farewell(FAREWELL, self.ended.changed()).await;
    }
}

/// Access to the heartbeat. One without a thread holds leases and extends
/// none.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    /// One without a thread.
    pub(crate) fn idle(timer: Timer) -> Self {
        Handle(Arc::new(Shared::new(timer)))
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.0.timer
    }

    /// What the lease's clock says: take it before a claim is sent.
    pub(crate) fn clock(&self) -> Duration {
        self.0.clock()
    }

    /// This lease is to be extended from now on. Its claim was sent then.
    pub(crate) fn hold(&self, lease: &Arc<Lease>, length: Duration, sent: Duration) {
        let next = self.0.timer.now() + interval(length);
        let (token, lease) = (lease.token, Arc::downgrade(lease));
        let mut beats = self.0.lock();
        beats.held.insert(token, Held { lease, length, next, sent, told: false, failing: false });
        // Waking a thread costs more than a claim from memory: only one that
        // would sleep too long.
        let sleeps_past = beats.until.is_none_or(|until| next < until);
        drop(beats);
        if sleeps_past {
            self.0.changed.notify_one();
        }
        if length < beat::LOOKS {
            self.0.shorter.notify_one();
        }
    }

    /// Nothing is open under this lease any more.
    pub(crate) fn let_go(&self, token: Token) {
        self.0.lock().held.remove(&token);
    }

    /// Whether a lease beside this one is open.
    pub(crate) fn holds_beside(&self, token: Token) -> bool {
        let beats = self.0.lock();
        beats.held.iter().any(|(other, held)| *other != token && held.lease.strong_count() > 0)
    }

    /// These tasks failed for good without a settlement.
    pub(crate) fn note_failed(&self, ids: &[TaskId]) {
        if !ids.is_empty() {
            self.0.note_failed(ids);
        }
    }

    /// Those that nobody was told of yet.
    pub(crate) fn take_failed(&self) -> Vec<TaskId> {
        std::mem::take(&mut lock(&self.0.failed))
    }

    /// How long the oldest transaction is open that slows the store down.
    pub(crate) fn oldest_transaction(&self) -> Option<Duration> {
        *lock(&self.0.oldest_transaction)
    }

    /// How long the store has not answered, if that is too long.
    pub(crate) fn away(&self) -> Option<Duration> {
        let answered = *lock(&self.0.answered);
        answered.map(|at| self.0.timer.since(at)).filter(|silent| *silent > AWAY)
    }

    /// Says what happened on the thread.
    pub(crate) fn tell(&self) {
        for event in std::mem::take(&mut *lock(&self.0.events)) {
            match event {
                Event::RanOut { open } => tracing::warn!(
                    open,
                    "a lease ran out: the store confirmed no extension in time; its handlers are \
                     cancelled"
                ),
                Event::NotWorthExtending { open } => tracing::warn!(
                    open,
                    "a handler is past its time and blocks its thread; its lease is extended no more"
                ),
            }
        }
    }
}
