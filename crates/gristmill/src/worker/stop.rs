//! Stopping: asked, then patient for a while, then forced.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

/// Ends the patience of a graceful stop, from anywhere.
#[derive(Debug, Clone, Default)]
pub struct Force(Arc<Notify>);

impl Force {
    /// Cancel what still runs, now.
    pub fn now(&self) {
        // Kept for a worker that comes to its stop later.
        self.0.notify_one();
    }
}

#[derive(Debug)]
pub(super) struct Stop {
    asked: watch::Sender<bool>,
    over: watch::Sender<bool>,
    within: Duration,
    force: Force,
}

impl Stop {
    pub(super) fn new(within: Duration, force: Force) -> Self {
        Stop { asked: watch::Sender::new(false), over: watch::Sender::new(false), within, force }
    }

    /// No more claims.
    pub(super) fn ask(&self) {
        self.asked.send_replace(true);
    }

    /// Waits for the stop and then out its patience: afterwards handlers are
    /// cancelled.
    pub(super) async fn patience(&self) {
        self.asked().await;
        let _ = tokio::time::timeout(self.within, self.force.0.notified()).await;
        self.over.send_replace(true);
    }

    pub(super) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Returns when the stop is asked for.
    pub(super) async fn asked(&self) {
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Returns when the patience is over.
    pub(super) async fn over(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}
