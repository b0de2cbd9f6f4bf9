//! Claims whose token the caller chose, so that a claim whose answer was lost can be
//! asked for again: the same token gives the same live claim.
//!
//! Only numbers are kept, never payloads: what is asked for again is read again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::{Claim, ClaimedTask, ExtendAnswer, Extension, Token, WorkerId};
use gristmill::{QueueName, TaskId, TaskState};

use crate::problem::Answer;
use crate::service::Service;

/// Most claims that are remembered; of more, those that end first are forgotten.
const REMEMBERED: usize = 10_000;

/// The claims.
#[derive(Debug, Default)]
pub(crate) struct Held {
    claims: Mutex<HashMap<Token, HeldClaim>>,
    /// Tokens for which somebody claims right now.
    turns: Mutex<HashMap<Token, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Clone)]
struct HeldClaim {
    queue: QueueName,
    worker: WorkerId,
    lease: Duration,
    /// The lease ends then unless it was extended; a hint for forgetting.
    until: Instant,
    tasks: Vec<HeldTask>,
}

/// What the store does not tell again of a task.
#[derive(Debug, Clone, Copy)]
struct HeldTask {
    id: TaskId,
    /// With this number it is this claim's, with a higher one another's.
    claims: u32,
    concurrent: Option<u32>,
    slot: Option<u32>,
    alone: bool,
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, HashMap<Token, HeldClaim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call a token at a time: who asks again while the first is still at it gets
    /// what the first one got.
    pub(crate) fn turn(&self, token: Token) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(token).or_default().clone()
    }

    /// Remembers a claim.
    pub(crate) fn keep(&self, claim: &Claim, worker: &WorkerId) {
        if claim.tasks.is_empty() {
            return;
        }
        let mut claims = self.lock();
        if claims.len() >= REMEMBERED {
            let now = Instant::now();
            claims.retain(|_, held| held.until > now);
            let soonest = claims.iter().min_by_key(|(_, held)| held.until).map(|(token, _)| *token);
            if let Some(token) = soonest.filter(|_| claims.len() >= REMEMBERED) {
                claims.remove(&token);
            }
        }
        let tasks = claim.tasks.iter().map(|task| HeldTask {
            id: task.id,
            claims: task.claims,
            concurrent: task.concurrent,
            slot: task.slot,
            alone: task.alone,
        });
        let held = HeldClaim {
            queue: claim.queue.clone(),
            worker: worker.clone(),
            lease: claim.lease,
            until: Instant::now() + claim.lease,
            tasks: tasks.collect(),
        };
        claims.insert(claim.token, held);
    }

    /// A lease was extended.
    pub(crate) fn extended(&self, token: Token, lease: Duration) {
        if let Some(held) = self.lock().get_mut(&token) {
            held.until = Instant::now() + lease;
        }
    }

    /// A task was settled under this token, or given back.
    pub(crate) fn settled(&self, token: Token, id: TaskId) {
        let mut claims = self.lock();
        if let Some(held) = claims.get_mut(&token) {
            held.tasks.retain(|task| task.id != id);
            if held.tasks.is_empty() {
                claims.remove(&token);
            }
        }
    }

    /// The claim of this token with what is still open of it, if it lives. Its lease
    /// begins anew.
    pub(crate) async fn again(&self, service: &Service, token: Token) -> Answer<Option<Claim>> {
        let Some(held) = self.lock().get(&token).cloned() else { return Ok(None) };
        let extension = Extension { token, lease: held.lease };
        let lives = service.store.extend(vec![extension]).await?;
        if !matches!(lives.first(), Some(ExtendAnswer::Extended { .. })) {
            self.lock().remove(&token);
            return Ok(None);
        }
        self.extended(token, held.lease);
        let mut tasks = Vec::with_capacity(held.tasks.len());
        for known in &held.tasks {
            let task = service.store.get(known.id).await?;
            let ours = task.filter(|task| {
                task.state == TaskState::Processing
                    && task.claims == known.claims
                    && task.lease.as_ref().is_some_and(|lease| lease.worker == held.worker)
            });
            if let Some(task) = ours {
                tasks.push(ClaimedTask {
                    id: task.id,
                    payload: task.payload,
                    key: task.key,
                    group: task.group,
                    source: task.source,
                    priority: task.priority,
                    attempt: task.attempts,
                    claims: task.claims,
                    created_at: task.created_at,
                    run_at: task.run_at,
                    prev_run_at: task.prev_run_at,
                    headers: task.headers,
                    concurrent: known.concurrent,
                    slot: known.slot,
                    alone: known.alone,
                });
            }
        }
        Ok(Some(Claim {
            token,
            queue: held.queue,
            lease: held.lease,
            tasks,
            next_due: None,
            held_back: None,
            paused: false,
            failed: Vec::new(),
        }))
    }
}
