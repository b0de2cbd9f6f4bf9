//! Of which queue a claim is: a caller whose token is for some queues settles and extends
//! claims of those only. What was claimed through this service is remembered; of another
//! claim the store is asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use gristmill::port::Token;
use gristmill::{QueueName, StoreError};

use crate::access::Caller;
use crate::limits::LEASED;
use crate::service::Service;

/// Claims that were made here lately.
#[derive(Debug, Default)]
pub(crate) struct Leased(Mutex<Lately>);

#[derive(Debug, Default)]
struct Lately {
    queues: HashMap<Token, QueueName>,
    /// The oldest first: it makes room.
    order: VecDeque<Token>,
}

impl Leased {
    /// A claim of this queue was given.
    pub(crate) fn note(&self, token: Token, queue: &QueueName) {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lately.queues.insert(token, queue.clone()).is_none() {
            lately.order.push_back(token);
        }
        while lately.order.len() > LEASED {
            if let Some(oldest) = lately.order.pop_front() {
                lately.queues.remove(&oldest);
            }
        }
    }

    fn known(&self, token: Token) -> Option<QueueName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).queues.get(&token).cloned()
    }
}

/// Whether a claim is of a queue that is not the caller's. One of which nothing is open
/// is nobody's: the store will say so.
pub(crate) async fn is_foreign(
    service: &Service,
    caller: &Caller,
    token: Token,
) -> Result<bool, StoreError> {
    if !caller.is_limited() {
        return Ok(false);
    }
    if let Some(queue) = service.leased.known(token) {
        return Ok(!caller.reaches(&queue));
    }
    for id in service.store.open_under(token).await? {
        if let Some(task) = service.store.get(id).await? {
            service.leased.note(token, &task.queue);
            return Ok(!caller.sees(&task));
        }
    }
    Ok(false)
}
