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

    /// No more claims; after the patience, handlers are cancelled.
    pub(super) fn ask(self: &Arc<Self>) {
        self.asked.send_replace(true);
        let stop = self.clone();
        tokio::spawn(async move {
            let forced = stop.force.0.notified();
            let _ = tokio::time::timeout(stop.within, forced).await;
            stop.over.send_replace(true);
        });
    }

    pub(super) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Returns when the stop is asked for.
    pub(super) async fn asked(&self) {
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }

    /// Returns when the patience is over.
    pub(super) async fn over(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}
