//! Commands that cannot be run at all: told once a queue, so that the queue is
//! served no more and no task is used up by a wrong path.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill::QueueName;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A queue whose command cannot be run, and what was said.
#[derive(Debug)]
pub(crate) struct BrokenHandler {
    pub(crate) queue: QueueName,
    pub(crate) why: String,
}

/// Where handlers tell of it.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    told: Arc<Mutex<HashSet<QueueName>>>,
    hears: UnboundedSender<BrokenHandler>,
}

impl Broken {
    /// The telling end and the hearing end.
    pub(crate) fn new() -> (Self, UnboundedReceiver<BrokenHandler>) {
        let (hears, heard) = unbounded_channel();
        (Broken { told: Arc::default(), hears }, heard)
    }

    /// A queue's command was corrected: it is told again when that one cannot be run.
    pub(crate) fn forget(&self, queue: &QueueName) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(queue);
    }

    /// Tells of it, once a queue.
    pub(super) fn tell(&self, queue: &QueueName, why: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(queue.clone()) {
            // Whoever heard may be gone: then all of it ends.
            let _ = self.hears.send(BrokenHandler { queue: queue.clone(), why });
        }
    }
}
