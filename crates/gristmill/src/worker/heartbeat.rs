//! The heartbeat: extends every open lease from a thread of its own.
//!
//! Handlers that block every thread of the runtime cannot starve it: it has
//! its own small runtime, and the store answers it from the store's thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gristmill_core::policy::reclaim_guard::heartbeat as interval;
use gristmill_core::{ExtendAnswer, Extension, Store, StoreError, TaskId, Token};
use tokio::sync::{Notify, watch};

use super::lease::{Cancel, Lease};

/// How often the store is swept.
const SWEEP: Duration = Duration::from_secs(1);
/// How long the end waits for the thread.
const FAREWELL: Duration = Duration::from_secs(1);
/// A store that was asked every second and is silent for this long is away.
const AWAY: Duration = Duration::from_millis(1_800);

/// One open lease. Weak, so that it is extended only while someone works on
/// it: a processor that ended badly must not keep its tasks for ever.
struct Held {
    lease: Weak<Lease>,
    length: Duration,
    next: Instant,
}

#[derive(Default)]
struct Beats {
    held: HashMap<Token, Held>,
    /// When the thread looks next by itself.
    until: Option<Instant>,
}

#[derive(Default)]
struct Shared {
    beats: Mutex<Beats>,
    changed: Notify,
    /// When the store last answered.
    answered: Mutex<Option<Instant>>,
    /// Tasks that failed for good by their last lease's end, as a sweep or a
    /// claim of this worker noticed; nobody was told yet.
    failed: Mutex<Vec<TaskId>>,
    /// What the last sweep said of others' transactions.
    oldest_transaction: Mutex<Option<Duration>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_failed(&self, ids: &[TaskId]) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
    }

    fn note_oldest(&self, open: Option<Duration>) {
        *self.oldest_transaction.lock().unwrap_or_else(PoisonError::into_inner) = open;
    }

    fn answered(&self) {
        let now = Some(Instant::now());
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// The thread.
pub(super) struct Heartbeat {
    shared: Arc<Shared>,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    pub(super) fn start(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let end = watch::Sender::new(false);
        let (beating, ended) = (shared.clone(), end.subscribe());
        // A store may open a connection of this runtime's own.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| StoreError::Unavailable(format!("no runtime for the heartbeat: {e}")))?;
        let thread = std::thread::Builder::new()
            .name("gristmill-heartbeat".to_owned())
            .spawn(move || runtime.block_on(beat(store, beating, ended)))
            .map_err(|e| StoreError::Unavailable(format!("no thread for the heartbeat: {e}")))?;
        Ok(Heartbeat { shared, end, thread: Some(thread) })
    }

    pub(super) fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Ends the thread; all leases are settled or given back by now.
    pub(super) async fn end(mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // It wakes at once, unless it waits for a store that is away: then
            // it ends with the process, which must not wait for it.
            let joined = tokio::task::spawn_blocking(move || thread.join());
            let _ = tokio::time::timeout(FAREWELL, joined).await;
        }
    }
}

/// Access to the heartbeat. One without a thread holds leases and extends
/// none.
#[derive(Clone, Default)]
pub(super) struct Handle(Arc<Shared>);

impl Handle {
    /// This lease is to be extended from now on.
    pub(super) fn hold(&self, lease: &Arc<Lease>, length: Duration) {
        let next = Instant::now() + interval(length);
        let (token, lease) = (lease.token, Arc::downgrade(lease));
        let mut beats = self.0.lock();
        beats.held.insert(token, Held { lease, length, next });
        // Waking a thread costs more than a claim from memory: only one that
        // would sleep too long.
        let sleeps_past = beats.until.is_none_or(|until| next < until);
        drop(beats);
        if sleeps_past {
            self.0.changed.notify_one();
        }
    }

    /// Nothing is open under this lease any more.
    pub(super) fn let_go(&self, token: Token) {
        self.0.lock().held.remove(&token);
    }

    /// Whether a lease beside this one is open.
    pub(super) fn holds_beside(&self, token: Token) -> bool {
        let beats = self.0.lock();
        beats.held.iter().any(|(other, held)| *other != token && held.lease.strong_count() > 0)
    }

    /// These tasks failed for good without a settlement.
    pub(super) fn note_failed(&self, ids: &[TaskId]) {
        if !ids.is_empty() {
            self.0.note_failed(ids);
        }
    }

    /// Those that nobody was told of yet.
    pub(super) fn take_failed(&self) -> Vec<TaskId> {
        std::mem::take(&mut self.0.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long the oldest transaction is open that slows the store down.
    pub(super) fn oldest_transaction(&self) -> Option<Duration> {
        *self.0.oldest_transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the store has not answered, if that is too long.
    pub(super) fn away(&self) -> Option<Duration> {
        let answered = *self.0.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.map(|at| at.elapsed()).filter(|silent| *silent > AWAY)
    }
}

/// Extends and sweeps side by side: a sweep that takes its time, or a store that
/// does not answer it, holds no lease up.
async fn beat(store: Arc<dyn Store>, shared: Arc<Shared>, end: watch::Receiver<bool>) {
    shared.answered();
    tokio::join!(
        extend_in_time(store.clone(), shared.clone(), end.clone()),
        sweep_each_second(store, shared, end)
    );
}

async fn extend_in_time(
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    mut end: watch::Receiver<bool>,
) {
    while !*end.borrow() {
        let (due, until) = due(&shared, Instant::now());
        if !due.is_empty() {
            extend(&store, &shared, due).await;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep_until(until.into()) => {}
            () = shared.changed.notified() => {}
            _ = end.changed() => {}
        }
    }
}

async fn sweep_each_second(
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    mut end: watch::Receiver<bool>,
) {
    while !*end.borrow() {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            _ = end.changed() => continue,
        }
        match store.sweep().await {
            Ok(report) => {
                shared.answered();
                shared.note_failed(&report.failed);
                shared.note_oldest(report.oldest_transaction);
            }
            Err(error) => tracing::warn!(%error, "the store was not swept"),
        }
    }
}

/// The leases to extend now, and when to look next: in a while when none is held,
/// since one that is taken up says so.
fn due(shared: &Shared, now: Instant) -> (Vec<Extension>, Instant) {
    let mut beats = shared.lock();
    beats.held.retain(|_, held| held.lease.strong_count() > 0);
    let due = beats
        .held
        .iter()
        .filter(|(_, held)| held.next <= now)
        .map(|(token, held)| Extension { token: *token, lease: held.length })
        .collect();
    let next = beats.held.values().map(|held| held.next).min();
    let until = next.unwrap_or(now + SWEEP).min(now + SWEEP);
    beats.until = Some(until);
    (due, until)
}

async fn extend(store: &Arc<dyn Store>, shared: &Shared, due: Vec<Extension>) {
    let answers = match store.extend(due.clone()).await {
        Ok(answers) => answers,
        Err(error) => {
            // The store is away: try again soon. If it stays away past the
            // lease, the next answer is *lease lost*.
            tracing::warn!(%error, "leases were not extended");
            let soon = Instant::now() + Duration::from_millis(500);
            let mut beats = shared.lock();
            for extension in due {
                if let Some(held) = beats.held.get_mut(&extension.token) {
                    held.next = soon;
                }
            }
            return;
        }
    };
    shared.answered();
    let mut beats = shared.lock();
    for (extension, answer) in due.into_iter().zip(answers) {
        let Some(open) = beats.held.get_mut(&extension.token) else { continue };
        open.next = Instant::now() + interval(open.length);
        let Some(lease) = open.lease.upgrade() else { continue };
        match answer {
            ExtendAnswer::Extended { cancelled, lost } => {
                tell(&lease, &cancelled, Cancel::Operator);
                tell(&lease, &lost, Cancel::LeaseLost);
            }
            ExtendAnswer::LeaseLost => {
                lease.lost();
                beats.held.remove(&extension.token);
            }
        }
    }
}

fn tell(lease: &Lease, ids: &[TaskId], why: Cancel) {
    for id in ids {
        lease.cancel(*id, why);
    }
}
