//! Claiming from one of several queues, by rotation, with a wait for work; and giving
//! back what nobody is there to take.

use std::sync::Arc;
use std::time::Duration;

use gristmill::port::{Claim, ClaimRequest, Outcome, Settlement, Token};
use gristmill::{StoreError, TaskId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::access::Caller;
use crate::held;
use crate::message::claim::Wanted;
use crate::problem::{Answer, Problem, TOKEN_IN_USE};
use crate::service::Service;

/// A claim that was made for somebody who waits. Dropped before it was handed over,
/// it is given back.
#[derive(Debug)]
pub(crate) struct Caught {
    service: Arc<Service>,
    /// Nothing once it was handed over.
    open: Option<(Token, Vec<TaskId>)>,
    claim: Claim,
}

impl Caught {
    pub(crate) fn new(service: Arc<Service>, claim: Claim) -> Self {
        let ids: Vec<TaskId> = claim.tasks.iter().map(|task| task.id).collect();
        let open = (!ids.is_empty()).then_some((claim.token, ids));
        Caught { service, open, claim }
    }

    pub(crate) const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What must still be given back if nobody takes it, without the payloads.
    pub(crate) fn receipt(mut self) -> Receipt {
        Receipt { service: self.service.clone(), open: self.open.take() }
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        if let Some((token, ids)) = self.open.take() {
            release(self.service.clone(), token, ids);
        }
    }
}

/// A claim on its way to the client.
#[derive(Debug)]
pub(crate) struct Receipt {
    service: Arc<Service>,
    open: Option<(Token, Vec<TaskId>)>,
}

impl Receipt {
    /// It was handed over: its lease is the client's.
    pub(crate) fn taken(&mut self) {
        self.open = None;
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some((token, ids)) = self.open.take() {
            release(self.service.clone(), token, ids);
        }
    }
}

/// Gives tasks back that no handler has seen. If that fails they come back when their
/// lease ends.
fn release(service: Arc<Service>, token: Token, ids: Vec<TaskId>) {
    tokio::spawn(async move {
        let release = |id| {
            let outcome = Outcome::Release { at: None, started: false };
            Settlement::new(id, token, outcome)
        };
        let count = ids.len();
        let settlements = ids.iter().copied().map(release).collect();
        match service.store.settle(settlements).await {
            Ok(_) => {
                tracing::info!(target: "gristmill::server", count, "tasks were given back: the client was gone");
            }
            Err(error) => {
                tracing::warn!(target: "gristmill::server", error = %error.whole(), count, "tasks could not be given back");
            }
        }
    });
}

/// Claims on a task of its own: a client that leaves must not cut a claim in two.
pub(crate) async fn claim(service: Arc<Service>, caller: Caller, wanted: Wanted) -> Answer<Caught> {
    let (mut send, receive) = oneshot::channel();
    tokio::spawn(async move {
        let caught = look(&service, &caller, wanted, &mut send).await;
        // Unsent, it is dropped, and what it caught goes back.
        let _ = send.send(caught);
    });
    match receive.await {
        Ok(caught) => caught,
        Err(_) => Err(Problem::new(&crate::problem::FAULT, "the claim was ended")),
    }
}

/// Looks at the queues in turn until one gives something, the time is over, the
/// client is gone, or the service stops.
async fn look(
    service: &Arc<Service>,
    caller: &Caller,
    wanted: Wanted,
    gone: &mut oneshot::Sender<Answer<Caught>>,
) -> Answer<Caught> {
    let until = Instant::now() + wanted.wait;
    let turn = wanted.token.map(|token| service.held.turn(token));
    let _turn = match &turn {
        Some(turn) => Some(turn.lock().await),
        None => None,
    };
    if let Some(token) = wanted.token
        && let Some(claim) = held::again(service, caller, token, wanted.lease).await?
    {
        // Not to be given back: whoever asked first may be at work on it.
        return Ok(Caught { service: service.clone(), open: None, claim });
    }
    let token = wanted.token.map_or_else(Token::random, Ok)?;
    let first = service.turn();
    loop {
        let mark = service.store.mark();
        let mut soonest: Option<Duration> = None;
        let mut empty = None;
        for at in 0..wanted.queues.len() {
            let Some(queue) = wanted.queues.get((first + at) % wanted.queues.len()) else { break };
            let request = ClaimRequest {
                queue: queue.clone(),
                max: wanted.max,
                lease: wanted.lease,
                worker: wanted.worker.clone(),
                source: wanted.source.clone(),
                token,
            };
            let claim = service.store.claim(request).await.map_err(|error| match error {
                // The one thing that is wrong with a token of the right form.
                StoreError::Invalid(why) if why.contains("token has claimed") => {
                    Problem::new(&TOKEN_IN_USE, why).at("token")
                }
                StoreError::Invalid(why) => Problem::field("lease", why),
                other => other.into(),
            })?;
            if !claim.tasks.is_empty() {
                let now = super::now();
                let waits = claim.tasks.iter().map(|task| now.since(task.run_at));
                service.mill.metrics().waited(queue, waits);
                return Ok(Caught::new(service.clone(), claim));
            }
            let due = [claim.next_due, claim.held_back];
            soonest = due.into_iter().flatten().chain(soonest).min();
            empty = Some(claim);
        }
        let left = until.saturating_duration_since(Instant::now());
        if let Some(claim) = empty.filter(|_| left.is_zero() || service.is_stopping()) {
            return Ok(Caught::new(service.clone(), claim));
        }
        // A task that falls due wakes nobody.
        let wait = soonest.map_or(left, |soonest| left.min(soonest.max(Duration::from_millis(1))));
        tokio::select! {
            waited = service.store.wait(&wanted.queues, mark, wait) => waited?,
            () = gone.closed() => {
                return Err(Problem::new(&crate::problem::STOPPING, "the client is gone"));
            }
            () = service.stops() => {}
        }
    }
}
