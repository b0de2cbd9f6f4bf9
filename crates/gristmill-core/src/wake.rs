//! Waking who waits for work, without losing a wake-up.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::QueueName;

/// A point in a store's stream of wake-ups. Take it before a claim, hand it to
/// `wait` after the claim came back empty: what happened in between is then
/// not missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct WakeMark(u64);

impl WakeMark {
    /// The mark of this number: for a store that has it from elsewhere.
    #[must_use]
    pub const fn at(number: u64) -> Self {
        WakeMark(number)
    }

    /// Its number. Of two marks of one store the later one has no smaller one.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The in-process half of a store's `wait`.
#[derive(Debug, Default)]
pub struct WakeSignal {
    marks: Mutex<Marks>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Marks {
    now: u64,
    everything: u64,
    ended: u64,
    queues: HashMap<QueueName, u64>,
}

impl WakeSignal {
    /// Now.
    #[must_use]
    pub fn mark(&self) -> WakeMark {
        WakeMark(self.lock().now)
    }

    /// Work may have become claimable in these queues.
    pub fn wake<'a>(&self, queues: impl IntoIterator<Item = &'a QueueName>) {
        let mut any = false;
        {
            let mut marks = self.lock();
            for queue in queues {
                marks.now += 1;
                let now = marks.now;
                marks.queues.insert(queue.clone(), now);
                any = true;
            }
        }
        if any {
            self.notify.notify_waiters();
        }
    }

    /// Work may have become claimable anywhere: another process wrote.
    pub fn wake_all(&self) {
        {
            let mut marks = self.lock();
            marks.now += 1;
            marks.everything = marks.now;
        }
        self.notify.notify_waiters();
    }

    /// A task that somebody waits for has ended.
    pub fn wake_ended(&self) {
        {
            let mut marks = self.lock();
            marks.now += 1;
            marks.ended = marks.now;
        }
        self.notify.notify_waiters();
    }

    /// Something changed that gives nobody work: only who compares marks sees it.
    pub fn stir(&self) {
        self.lock().now += 1;
    }

    /// Returns once one of the queues was woken after `since`, or at the
    /// timeout.
    pub async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) {
        let woken = |marks: &Marks| {
            queues.iter().any(|q| marks.queues.get(q).is_some_and(|at| *at > since.0))
        };
        self.wait_until(woken, since, timeout).await;
    }

    /// Returns once a task that somebody waits for has ended after `since`, or at
    /// the timeout.
    pub async fn wait_ended(&self, since: WakeMark, timeout: Duration) {
        self.wait_until(|marks| marks.ended > since.0, since, timeout).await;
    }

    async fn wait_until(
        &self,
        is_woken: impl Fn(&Marks) -> bool,
        since: WakeMark,
        timeout: Duration,
    ) {
        let woken = async {
            loop {
                let notified = self.notify.notified();
                tokio::pin!(notified);
                // Registered before looking: a wake-up between the look and
                // the await is not lost.
                notified.as_mut().enable();
                let is_over = {
                    let marks = self.lock();
                    marks.everything > since.0 || is_woken(&marks)
                };
                if is_over {
                    return;
                }
                notified.await;
            }
        };
        // The timeout is an answer too: the caller looks again either way.
        let _ = tokio::time::timeout(timeout, woken).await;
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        // Plain numbers are valid whatever a panicking holder did.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
