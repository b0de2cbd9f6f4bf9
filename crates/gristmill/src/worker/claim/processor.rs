//! One loop: claim a batch, call the handler, settle; and meanwhile claim the
//! next one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gristmill_core::{QueueName, StoreError, WakeMark};
use tokio::sync::watch;

use crate::outage::{Outage, Part};
use crate::pause::Pause;
use crate::worker::claim::look::Found;
use crate::worker::claim::rotation::{Post, Turns};
use crate::worker::control::shared::{Shared, Wish};
use crate::worker::heartbeat::lease::Lease;
use crate::worker::run::overseer;

/// Longest wait between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How often a draining processor tries a store that does not answer.
const DRAIN_TRIES: u32 = 5;

pub(crate) struct Processor {
    shared: Arc<Shared>,
    number: usize,
    turns: Turns,
    pause: Pause,
    /// Draining, it waited for a token, and looks again.
    refilled: bool,
}

/// What a look at the store came to.
enum Looked {
    Found(Found),
    /// Nothing is due.
    Nothing(Idleness),
}

/// What is known of the time when nothing is due.
#[derive(Clone, Copy)]
struct Idleness {
    /// Look again after this time at the latest.
    look_again: Duration,
    /// Leases ran out, and are taken back after this time.
    held_back: Option<Duration>,
    /// Tasks are due, and there may be a token for one after this time.
    refill: Option<Duration>,
}

impl Processor {
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Self {
        // Each begins elsewhere in the rotation.
        let pause = Pause::of(&shared.worker, number);
        Processor { turns: Turns::from(number), shared, number, pause, refilled: false }
    }

    /// Runs until the stop, until there should be fewer processors or,
    /// draining, until nothing is due. The error is what a draining processor
    /// gave up for.
    pub(crate) async fn run(mut self) -> Option<StoreError> {
        let ended = self.work().await;
        self.shared.cycles.left(self.number);
        ended.err()
    }

    async fn work(&mut self) -> Result<(), StoreError> {
        let mut ahead: Option<Found> = None;
        let mut before: Option<Arc<Lease>> = None;
        loop {
            if self.is_over() {
                if let Some(found) = ahead {
                    self.shared.give_back(&found.hand);
                }
                return Ok(());
            }
            let found = match ahead.take() {
                Some(found) => found,
                None => match self.next(&mut before).await? {
                    Some(found) => found,
                    None if std::mem::take(&mut self.refilled) => continue,
                    None if self.shared.terms.drain => return Ok(()),
                    None => continue,
                },
            };
            ahead = self.cycle(&found).await;
            // No more than one claim is being settled while another one runs:
            // what a handler is done with does not pile up in memory.
            let lease = found.hand.lease.clone();
            let limited = found.limited;
            drop(found);
            if limited {
                self.shared.freed.notify_one();
            }
            if let Some(before) = before.replace(lease) {
                before.settled().await;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.shared.stop.is_asked() || self.number >= self.shared.wish.borrow().running()
    }

    /// Runs one claim, and claims ahead while it runs.
    async fn cycle(&mut self, found: &Found) -> Option<Found> {
        let shared = self.shared.clone();
        shared.cycles.cycle(self.number, Some(&found.hand));
        let more = || shared.served.iter().any(|served| served.has_more());
        let quick = found.hand.served.is_quick(found.hand.holding())
            && !found.hand.alone
            && !found.one_at_a_time;
        let next = async {
            if !quick || !more() {
                return None;
            }
            match self.look(true).await {
                Ok(Looked::Found(next)) => Some(next),
                // Nothing is lost: it is looked for again after this run.
                Ok(Looked::Nothing(_)) | Err(_) => None,
            }
        };
        let start = shared.timer.now();
        let worked = async {
            overseer::work_off(&shared, &found.hand).await;
            if let Some(queue) = shared.queues.last(&found.hand.served.name) {
                let took = shared.timer.since(start);
                shared.mill.metrics().cycle(queue.number, &queue.name, took);
            }
        };
        let ((), next) = tokio::join!(worked, next);
        shared.cycles.cycle(self.number, None);
        // A queue that was paused or switched off meanwhile gets back what was
        // claimed ahead.
        let next = next?;
        let served = &next.hand.served;
        let paused = shared.queues.last(&served.name).is_some_and(|queue| queue.paused);
        if paused || !served.is_on() {
            shared.give_back(&next.hand);
            return None;
        }
        Some(next)
    }

    /// The next claim that takes something. Waits for it, unless the worker
    /// drains, there is a change to hear of, or the store is away.
    async fn next(&mut self, before: &mut Option<Arc<Lease>>) -> Result<Option<Found>, StoreError> {
        // Before the look: what comes meanwhile, a task or a wish, is not missed,
        // and nobody has to look twice to be sure of that.
        let wish = self.shared.wish.subscribe();
        let mark = self.shared.mill.store().mark();
        let looked = self.look(false).await;
        let idle = match self.answered(looked).await? {
            Some(Looked::Found(found)) => return Ok(Some(found)),
            Some(Looked::Nothing(idle)) => idle,
            None => return Box::pin(self.again(before)).await,
        };
        if self.shared.terms.drain {
            // What is being settled may put follow-ups: look once more then.
            return match (before.take(), idle.held_back) {
                (Some(before), _) if before.open() > 0 => {
                    before.settled().await;
                    Box::pin(self.next(&mut None)).await
                }
                // Who starts a drain now and then would never outlast it.
                (_, Some(left)) => {
                    tracing::info!(?left, "the clock jumped: leases that ran out are waited for");
                    tokio::select! {
                        () = self.shared.timer.sleep(left) => {}
                        () = self.shared.stop.asked() => {}
                    }
                    Box::pin(self.again(&mut None)).await
                }
                // What is due and waits for its rate is part of what is to be drained.
                _ => match idle.refill {
                    Some(refill) => {
                        tokio::select! {
                            () = self.shared.timer.sleep(refill) => {}
                            () = self.shared.stop.asked() => {}
                        }
                        self.refilled = true;
                        Ok(None)
                    }
                    None => Ok(None),
                },
            };
        }
        self.wait(wish, (mark, idle)).await
    }

    /// After a store that did not answer.
    async fn again(
        &mut self,
        before: &mut Option<Arc<Lease>>,
    ) -> Result<Option<Found>, StoreError> {
        if self.is_over() { Ok(None) } else { self.next(before).await }
    }

    /// Idle: of all processors with the same queues one looks for work, and
    /// when it has found some the next one looks. A thousand idle processors
    /// cost no more than one. `looked`: a look found nothing, after that mark.
    async fn wait(
        &mut self,
        mut wish: watch::Receiver<Wish>,
        looked: (WakeMark, Idleness),
    ) -> Result<Option<Found>, StoreError> {
        let shared = self.shared.clone();
        let _idle = Idle::new(&shared);
        if self.is_over() || wish.has_changed().unwrap_or(true) {
            return Ok(None);
        }
        let post = Post::of(&shared, self.number);
        let (_scout, mut looked) = match post.scout(&shared).try_lock() {
            Ok(scout) => (scout, Some(looked)),
            // Who looked meanwhile may have left something.
            Err(_) => tokio::select! {
                scout = post.scout(&shared).lock() => (scout, None),
                () = shared.stop.asked() => return Ok(None),
                _ = wish.changed() => return Ok(None),
            },
        };
        let queues: Vec<QueueName> =
            post.queues(&shared).iter().map(|served| served.name.clone()).collect();
        loop {
            let (mark, idle_for) = match looked.take() {
                Some((mark, idle)) => (mark, idle.look_again),
                None => {
                    let mark = shared.mill.store().mark();
                    let looked = self.look(false).await;
                    let idle_for = match self.answered(looked).await? {
                        Some(Looked::Found(found)) => return Ok(Some(found)),
                        Some(Looked::Nothing(idle)) => idle.look_again,
                        None => Duration::ZERO,
                    };
                    (mark, idle_for)
                }
            };
            if shared.stop.is_asked() || wish.has_changed().unwrap_or(true) {
                return Ok(None);
            }
            let store = shared.mill.store();
            // Work comes first: the others are not even looked at when it is
            // there, and a put is not kept waiting for that. They have their
            // turn above, however often the store wakes.
            tokio::select! {
                biased;
                waited = store.wait(&queues, mark, idle_for) => if waited.is_err() {
                    tokio::select! {
                        () = self.pause.wait(&shared.timer) => {}
                        () = shared.stop.asked() => return Ok(None),
                    }
                },
                () = shared.timer.moved_by(idle_for) => {}
                () = shared.freed.notified() => {}
                () = shared.stop.asked() => return Ok(None),
                _ = wish.changed() => return Ok(None),
            }
        }
    }

    /// Waits a little when the store did not answer; a draining processor
    /// gives up after some tries.
    async fn answered(
        &mut self,
        looked: Result<Looked, StoreError>,
    ) -> Result<Option<Looked>, StoreError> {
        let error = match looked {
            Ok(looked) => {
                self.pause.over();
                self.shared.mill.outage().answered(Part::Claims, &self.shared.timer);
                return Ok(Some(looked));
            }
            Err(error) => error,
        };
        let hopeless = !error.is_retryable() && error.wrote_nothing();
        if self.shared.terms.drain && (hopeless || self.pause.failures() >= DRAIN_TRIES) {
            return Err(error);
        }
        if Outage::means(&error) {
            tracing::debug!(error = %error.whole(), "the store did not answer; trying again");
            self.shared.mill.outage().failed(Part::Claims, &error, self.shared.timer.now());
        } else {
            tracing::warn!(error = %error.whole(), "nothing can be claimed; trying again");
        }
        tokio::select! {
            () = self.pause.wait(&self.shared.timer) => {}
            () = self.shared.stop.asked() => {}
        }
        Ok(None)
    }

    /// Goes round the queues from where it stopped, until a claim takes
    /// something.
    async fn look(&mut self, ahead: bool) -> Result<Looked, StoreError> {
        let post = Post::of(&self.shared, self.number);
        self.shared.cycles.posted(self.number, post.name());
        let mut idle = Idleness { look_again: LOOK_AGAIN, held_back: None, refill: None };
        let mut failed = None;
        let order = post.order(&self.shared);
        for _ in 0..order.len() {
            let Some(served) = self.turns.next(&order) else { break };
            if self.shared.stop.is_asked() {
                break;
            }
            match self.shared.claim(served, ahead).await {
                Ok(look) => {
                    if let Some(found) = look.found {
                        return Ok(Looked::Found(found));
                    }
                    if look.skipped {
                        // Its turn comes when nothing runs.
                        self.turns.back();
                        break;
                    }
                    let due = look.next_due.into_iter().chain(look.held_back);
                    idle.look_again = due.fold(idle.look_again, Duration::min);
                    idle.held_back = idle.held_back.into_iter().chain(look.held_back).min();
                    idle.refill = idle.refill.into_iter().chain(look.refill).min();
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(Looked::Nothing(idle)), Err)
    }
}

/// Counts a processor as idle, until it is dropped.
struct Idle<'a>(&'a Shared);

impl<'a> Idle<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.idle.fetch_add(1, Ordering::Relaxed);
        Idle(shared)
    }
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.idle.fetch_sub(1, Ordering::Relaxed);
    }
}
