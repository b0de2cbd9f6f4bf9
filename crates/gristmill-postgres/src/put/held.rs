//! Waiting for somebody else's open transaction, which may take a minute: a put
//! of an equal key or id has to, and one for a subject whose row is held.
//!
//! Nobody else may wait with it. So a statement gives up soon, and who has to
//! wait takes turns with others who have to, over a few connections: the rest
//! of them stay free for puts, claims and settlements.

use std::sync::Arc;

use gristmill_core::{PutReport, PutRequest, Result, StoreError};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use crate::deadline::Class;
use crate::store::Inner;

/// Connections that wait at a time. Who waits is at the front of the row when
/// the transaction ends, or has its turn soon.
const AT_A_TIME: usize = 2;

/// How long a statement waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Longer than a commit takes: two puts of one key at the same time do not
    /// notice.
    Short,
    /// One turn of many: others have theirs in between.
    Turn,
}

impl Patience {
    pub(crate) const fn millis(self) -> i32 {
        match self {
            Patience::Short => 25,
            Patience::Turn => 250,
        }
    }
}

/// The turns of those who wait.
#[derive(Debug)]
pub(crate) struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Turns(Semaphore::new(AT_A_TIME))
    }
}

/// Puts in a statement of its own, and waits where it has to.
pub(crate) async fn put(inner: &Arc<Inner>, request: &PutRequest) -> Result<PutReport> {
    match inner.put_now(request, Patience::Short).await {
        Err(StoreError::Held(_)) => wait(inner, request).await,
        answer => answer,
    }
}

/// Puts what is known to have to wait. That ends, too: whoever left the
/// transaction open may have forgotten it.
pub(crate) async fn wait(inner: &Arc<Inner>, request: &PutRequest) -> Result<PutReport> {
    let deadline = inner.pool.deadline(Class::Operator);
    let mut held = StoreError::held("others wait before this one".to_owned());
    loop {
        // First come, first served: who had a turn goes to the end.
        let turn = match timeout_at(deadline.at, inner.turns.0.acquire()).await {
            Ok(turn) => turn.map_err(|_| StoreError::Closed)?,
            Err(_) => return Err(held),
        };
        match inner.put_now(request, Patience::Turn).await {
            Err(still @ StoreError::Held(_)) if deadline.has_passed() => return Err(still),
            Err(still @ StoreError::Held(_)) => held = still,
            answer => return answer,
        }
        drop(turn);
    }
}
