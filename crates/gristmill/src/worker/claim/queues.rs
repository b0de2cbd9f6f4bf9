//! The queues as the store has them, read again once a second at most: an operator's
//! change is heard of within that time, and a claim asks no second question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{Queue, QueueName, StoreError};

use crate::Mill;
use crate::timer::Timer;

/// An operator's change of a queue is heard of within this time.
const QUEUES_FOR: Duration = Duration::from_secs(1);

/// What one worker knows of the queues.
pub(crate) struct Queues {
    mill: Mill,
    timer: Timer,
    known: Mutex<Option<Known>>,
}

/// The queues as they were read then.
struct Known {
    at: Instant,
    queues: HashMap<QueueName, Arc<Queue>>,
}

impl Queues {
    pub(crate) fn new(mill: Mill, timer: Timer) -> Self {
        Queues { mill, timer, known: Mutex::default() }
    }

    /// A queue as the store has it, read again once a second at most.
    pub(crate) async fn get(&self, name: &QueueName) -> Result<Arc<Queue>, StoreError> {
        let unknown = || StoreError::UnknownQueue { name: name.to_string(), suggestion: None };
        if let Some(known) = &*self.lock()
            && self.timer.since(known.at) < QUEUES_FOR
        {
            return known.queues.get(name).cloned().ok_or_else(unknown);
        }
        let queues = self.mill.store().queues().await?;
        let queues: HashMap<_, _> =
            queues.into_iter().map(|queue| (queue.name.clone(), Arc::new(queue))).collect();
        let queue = queues.get(name).cloned();
        *self.lock() = Some(Known { at: self.timer.now(), queues });
        queue.ok_or_else(unknown)
    }

    /// A queue as it was last read, however long ago.
    pub(crate) fn last(&self, name: &QueueName) -> Option<Arc<Queue>> {
        self.lock().as_ref().and_then(|known| known.queues.get(name).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
