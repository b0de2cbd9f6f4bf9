//! Claims whose token the caller chose, so that a claim whose answer was lost can be
//! asked for again: the same token gives the same live claim, after a restart and from
//! another process too, because the store knows what is open under it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill::TaskState;
use gristmill::port::{Claim, ClaimedTask, ExtendAnswer, Extension, Token};

use crate::access::Caller;
use crate::problem::{Answer, Problem, TOKEN_IN_USE};
use crate::service::Service;

/// Tokens for which somebody claims right now.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<HashMap<Token, Arc<tokio::sync::Mutex<()>>>>);

impl Held {
    /// One call a token at a time: who asks again while the first is still at it gets
    /// what the first one got.
    pub(crate) fn turn(&self, token: Token) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(token).or_default().clone()
    }
}

/// The claim of this token with what is still open of it, if it lives. Its lease begins
/// anew, so that its length is true from the answer on. How many others of its group ran
/// is not told again.
pub(crate) async fn again(
    service: &Service,
    caller: &Caller,
    token: Token,
    lease: Option<Duration>,
) -> Answer<Option<Claim>> {
    let ids = service.store.open_under(token).await?;
    let mut tasks = Vec::with_capacity(ids.len());
    let mut queue = None;
    for id in ids {
        let task = service.store.get(id).await?;
        let Some(task) = task.filter(|task| task.state == TaskState::Processing) else { continue };
        if !caller.sees(&task) {
            let why = "this token has claimed from another queue";
            return Err(Problem::new(&TOKEN_IN_USE, why).at("token"));
        }
        queue = Some(task.queue.clone());
        tasks.push(ClaimedTask::from(task));
    }
    let Some(queue) = queue else { return Ok(None) };
    let lease = match lease {
        Some(lease) => lease,
        None => service.known.queues(service).await?.lease(&queue),
    };
    let extended = service.store.extend(vec![Extension::new(token, lease)]).await?;
    if !matches!(extended.first(), Some(ExtendAnswer::Extended { .. })) {
        return Ok(None);
    }
    Ok(Some(Claim {
        token,
        queue,
        lease,
        tasks,
        next_due: None,
        held_back: None,
        paused: false,
        failed: Vec::new(),
    }))
}
