//! One look at one queue: the claim, and what it came to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gristmill_core::policy::rate::may_wait_for_a_token;
use gristmill_core::{ClaimRequest, StoreError, Token};

use crate::worker::claim::served::{Busy, Served};
use crate::worker::control::shared::Shared;
use crate::worker::heartbeat::lease::Lease;
use crate::worker::run::hand::Hand;

/// A claim that took something.
pub(crate) struct Found {
    pub(crate) hand: Arc<Hand>,
    pub(crate) one_at_a_time: bool,
    /// Others may wait for this place on the queue.
    pub(crate) limited: bool,
    /// The processor's place on the queue while it has this claim.
    _busy: Busy,
}

/// What a claim came to.
pub(crate) struct Look {
    pub(crate) found: Option<Found>,
    /// The queue allows no claim ahead.
    pub(crate) skipped: bool,
    pub(crate) next_due: Option<Duration>,
    /// How long leases that ran out are still spared.
    pub(crate) held_back: Option<Duration>,
    /// How long until there may be a token for tasks that are due.
    pub(crate) refill: Option<Duration>,
}

impl Shared {
    /// Claims from one queue. `ahead` is for a claim while another one runs,
    /// which queues with counts, slots, limits or a single attempt do not allow.
    pub(crate) async fn claim(
        &self,
        served: &Arc<Served>,
        ahead: bool,
    ) -> Result<Look, StoreError> {
        let nothing =
            Look { found: None, skipped: false, next_due: None, held_back: None, refill: None };
        let queue = self.queues.get(&served.name).await?;
        let settings = &queue.settings;
        let one_at_a_time = settings.one_at_a_time();
        // Counted before the look: whoever goes alone after it waits for us.
        let _claiming = self.gate.claiming();
        if !served.is_on() || self.gate.is_someone_alone() {
            return Ok(nothing);
        }
        // Where a claim is the only attempt, a kill would use up what was
        // claimed ahead and never begun. Where claims are limited, what is held and
        // does not run keeps others from running.
        let must_start = one_at_a_time || settings.is_limited() || settings.max_attempts == Some(1);
        if ahead && must_start {
            return Ok(Look { skipped: true, ..nothing });
        }
        let Some(busy) = served.enter(settings.processors_max) else { return Ok(nothing) };
        let batch = self.wish.borrow().batch;
        let max = served.batch(batch, settings, self.idle.load(Ordering::Relaxed));
        let store = self.mill.store();
        let mut sent;
        let claim = loop {
            let request = ClaimRequest {
                queue: served.name.clone(),
                max,
                lease: self.terms.lease,
                worker: self.worker.clone(),
                source: self.terms.source.clone(),
                token: Token::random()?,
            };
            sent = self.heartbeat.clock();
            let claim = store.claim(request).await?;
            self.heartbeat.note_failed(&claim.failed);
            // Those it took cannot be read and have failed: not nothing, but
            // nothing to hand out. What stands behind them may be due.
            let again = claim.tasks.is_empty() && !claim.failed.is_empty();
            if !again || self.stop.is_asked() {
                break claim;
            }
        };
        let token = claim.token;
        served.claimed(max, claim.tasks.len(), store.limits().claim_tasks);
        if claim.tasks.is_empty() {
            let (next_due, held_back) = (claim.next_due, claim.held_back);
            let refill = next_due.filter(|due| may_wait_for_a_token(settings, *due));
            return Ok(Look { next_due, held_back, refill, ..nothing });
        }
        let lease = Arc::new(Lease::new(self.mill.clone(), token, claim.tasks.len()));
        self.heartbeat.hold(&lease, claim.lease, sent);
        let worker = self.worker.clone();
        let timeout = (settings.timeout, self.terms.timed);
        let timer = self.timer.clone();
        let hand = Hand::new(served.clone(), lease, worker, timer, timeout, claim.tasks);
        let limited = settings.processors_max.is_some();
        let found = Found { hand: Arc::new(hand), one_at_a_time, limited, _busy: busy };
        Ok(Look { found: Some(found), ..nothing })
    }
}
