//! Who runs beside others and who alone: a task with two expired leases behind it is
//! the only one that its worker holds while it runs (rule 4).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{RwLock, watch};

use crate::worker::control::shared::Wish;

/// One worker's gate.
pub(crate) struct Gate {
    /// Held for reading by what runs, for writing by what must run alone.
    pub(crate) running: RwLock<()>,
    /// A task that must run alone is in hand: nothing else is claimed.
    alone: watch::Sender<bool>,
    /// Claims that were asked for and are not in hand yet: the store may have
    /// given their tasks to this worker already.
    claiming: AtomicUsize,
    wish: watch::Sender<Wish>,
}

impl Gate {
    pub(crate) fn new(wish: watch::Sender<Wish>) -> Self {
        let (running, claiming) = (RwLock::new(()), AtomicUsize::new(0));
        Gate { running, alone: watch::Sender::new(false), claiming, wish }
    }

    /// A claim is under way, until what is returned is dropped: what it takes is as
    /// good as held.
    pub(crate) fn claiming(&self) -> Claiming<'_> {
        self.claiming.fetch_add(1, Ordering::SeqCst);
        Claiming(&self.claiming)
    }

    /// Whether a claim is under way.
    pub(crate) fn is_claiming(&self) -> bool {
        self.claiming.load(Ordering::SeqCst) > 0
    }

    /// From now on, until what is returned is dropped, nothing is claimed and
    /// nothing new begins. None when another task has this right.
    pub(crate) fn go_alone(self: &Arc<Self>) -> Option<Alone> {
        let first = self.alone.send_if_modified(|alone| !std::mem::replace(alone, true));
        first.then(|| Alone(self.clone()))
    }

    pub(crate) fn is_someone_alone(&self) -> bool {
        *self.alone.borrow()
    }

    /// Returns when a task is in hand that must run alone.
    pub(crate) async fn someone_alone(&self) {
        let _ = self.alone.subscribe().wait_for(|alone| *alone).await;
    }
}

/// A claim that is under way, until this is dropped.
pub(crate) struct Claiming<'a>(&'a AtomicUsize);

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The right to run alone.
pub(crate) struct Alone(Arc<Gate>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.alone.send_replace(false);
        // Whoever found nothing meanwhile looks again.
        self.0.wish.send_modify(|_| {});
    }
}
