//! The heartbeat: extends every open lease from a thread of its own.
//!
//! Handlers that block every thread of the runtime cannot starve it: it has
//! its own small runtime, and the store answers it from the store's thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gristmill_core::policy::reclaim_guard::heartbeat as interval;
use gristmill_core::{ExtendAnswer, Extension, Store, StoreError, TaskId, Token};
use tokio::sync::{Notify, watch};

use super::context::Cancel;

/// How often the store is swept.
const SWEEP: Duration = Duration::from_secs(1);

/// One open lease and the attempts that run under it.
struct Held {
    lease: Duration,
    next: Instant,
    running: HashMap<TaskId, watch::Sender<Option<Cancel>>>,
}

#[derive(Default)]
struct Shared {
    held: Mutex<HashMap<Token, Held>>,
    changed: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Token, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
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
            // It wakes at once; joining must still not block the runtime.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

/// A processor's access to the heartbeat.
#[derive(Clone)]
pub(super) struct Handle(Arc<Shared>);

impl Handle {
    /// This lease is to be extended from now on.
    pub(super) fn hold(&self, token: Token, lease: Duration) {
        let next = Instant::now() + interval(lease);
        self.0.lock().insert(token, Held { lease, next, running: HashMap::new() });
        self.0.changed.notify_one();
    }

    /// This task runs under it.
    pub(super) fn runs(&self, token: Token, id: TaskId, cancel: watch::Sender<Option<Cancel>>) {
        match self.0.lock().get_mut(&token) {
            Some(held) => {
                held.running.insert(id, cancel);
            }
            // The lease was lost while the task waited for its turn.
            None => {
                cancel.send_replace(Some(Cancel::LeaseLost));
            }
        }
    }

    /// Whether the lease is still ours, as far as we know.
    pub(super) fn is_held(&self, token: Token) -> bool {
        self.0.lock().contains_key(&token)
    }

    /// This task ended.
    pub(super) fn ended(&self, token: Token, id: TaskId) {
        if let Some(held) = self.0.lock().get_mut(&token) {
            held.running.remove(&id);
        }
    }

    /// Nothing is open under this lease any more.
    pub(super) fn let_go(&self, token: Token) {
        self.0.lock().remove(&token);
    }
}

async fn beat(store: Arc<dyn Store>, shared: Arc<Shared>, mut end: watch::Receiver<bool>) {
    let mut next_sweep = Instant::now() + SWEEP;
    while !*end.borrow() {
        let now = Instant::now();
        let (due, next) = due(&shared, now);
        if !due.is_empty() {
            extend(&store, &shared, due).await;
            continue;
        }
        if now >= next_sweep {
            if let Err(error) = store.sweep().await {
                tracing::warn!(%error, "the store was not swept");
            }
            next_sweep = Instant::now() + SWEEP;
            continue;
        }
        let until = next.map_or(next_sweep, |next| next.min(next_sweep));
        tokio::select! {
            () = tokio::time::sleep_until(until.into()) => {}
            () = shared.changed.notified() => {}
            _ = end.changed() => {}
        }
    }
}

/// The leases to extend now, and when the next one is due.
fn due(shared: &Shared, now: Instant) -> (Vec<Extension>, Option<Instant>) {
    let held = shared.lock();
    let due = held
        .iter()
        .filter(|(_, held)| held.next <= now)
        .map(|(token, held)| Extension { token: *token, lease: held.lease })
        .collect();
    (due, held.values().map(|held| held.next).min())
}

async fn extend(store: &Arc<dyn Store>, shared: &Shared, due: Vec<Extension>) {
    let answers = match store.extend(due.clone()).await {
        Ok(answers) => answers,
        Err(error) => {
            // The store is away: try again soon. If it stays away past the
            // lease, the next answer is *lease lost*.
            tracing::warn!(%error, "leases were not extended");
            let soon = Instant::now() + Duration::from_millis(500);
            let mut held = shared.lock();
            for extension in due {
                if let Some(held) = held.get_mut(&extension.token) {
                    held.next = soon;
                }
            }
            return;
        }
    };
    let mut held = shared.lock();
    for (extension, answer) in due.into_iter().zip(answers) {
        let Some(lease) = held.get_mut(&extension.token) else { continue };
        lease.next = Instant::now() + interval(lease.lease);
        match answer {
            ExtendAnswer::Extended { cancelled, lost } => {
                tell(lease, &cancelled, Cancel::Operator);
                tell(lease, &lost, Cancel::LeaseLost);
            }
            ExtendAnswer::LeaseLost => {
                for cancel in lease.running.values() {
                    cancel.send_replace(Some(Cancel::LeaseLost));
                }
                held.remove(&extension.token);
            }
        }
    }
}

fn tell(lease: &Held, ids: &[TaskId], why: Cancel) {
    for id in ids {
        if let Some(cancel) = lease.running.get(id) {
            cancel.send_replace(Some(why));
        }
    }
}
