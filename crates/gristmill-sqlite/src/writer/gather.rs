//! What the writer takes up next: the requests that came meanwhile, those that come
//! while it is at it, and a look at what other processes wrote.

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::{RELAXED, Writer};
use crate::ask::{Ask, Order};

/// How long after a commit the callers it answered are waited for.
const COMPANY: Duration = Duration::from_micros(250);
/// How long a nap is while they come.
const NAP: Duration = Duration::from_micros(20);

impl Writer<'_> {
    /// What was asked since the last group. Nothing at all means the end.
    pub(super) fn gather(&mut self) -> Option<Vec<Box<dyn Ask>>> {
        if self.closing {
            return None;
        }
        let mut group = Vec::new();
        let first = match self.patience() {
            None => self.orders.recv().ok(),
            Some(patience) => match self.orders.recv_timeout(patience) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => Some(Order::Look),
                Err(RecvTimeoutError::Disconnected) => None,
            },
        }?;
        let mut next = Some(first);
        while let Some(order) = next {
            match order {
                Order::Ask(ask) => group.push(ask),
                Order::Look => self.look(),
                // What came before it in the group is done first.
                Order::Close if group.is_empty() => return None,
                Order::Close => {
                    self.closing = true;
                    break;
                }
            }
            next = if group.len() < self.setup.group { self.orders.try_recv().ok() } else { None };
        }
        Some(group)
    }

    /// Adds what was asked while the group ran; returns whether anything was.
    pub(super) fn join(&mut self, group: &mut Vec<Box<dyn Ask>>) -> bool {
        let before = group.len();
        while group.len() < self.setup.group && !self.closing {
            let mut order = self.orders.try_recv().ok();
            if order.is_none() && group.len() == before {
                order = self.company(before);
            }
            match order {
                Some(Order::Ask(ask)) => group.push(ask),
                // Whoever waits is looked for after this commit.
                Some(Order::Look) => {}
                Some(Order::Close) => self.closing = true,
                None => break,
            }
        }
        group.len() > before
    }

    /// Waits a moment for callers that were just answered and are about to ask
    /// again: without it the first of them would get a commit of its own, and
    /// the others another one. Nobody waits who was alone before.
    fn company(&self, gathered: usize) -> Option<Order> {
        let (expected, at) = self.answered?;
        while gathered < expected && at.elapsed() < COMPANY {
            // A nap and not a wait on the channel: every request would end it,
            // and waking up costs more than the request.
            std::thread::sleep(NAP);
            if let Ok(order) = self.orders.try_recv() {
                return Some(order);
            }
        }
        None
    }

    /// How long to wait for the next request before something is due.
    fn patience(&self) -> Option<Duration> {
        let look = (self.setup.waiting.load(Ordering::Acquire) > 0).then_some(self.setup.look);
        let sync = self.unsynced.map(|since| RELAXED.saturating_sub(since.elapsed()));
        [look, sync].into_iter().flatten().min()
    }

    /// Wakes who waits when another connection has written.
    fn look(&mut self) {
        if self.setup.place.check().is_err() {
            // Whoever is woken asks, and is told.
            self.setup.wake.wake_all();
            return;
        }
        match self.known.others_wrote(&self.db) {
            Ok(true) => {
                let refreshed = self.known.refresh(&self.db);
                if let Err(error) = refreshed {
                    tracing::debug!(error = %error.whole(), "the store could not be looked at");
                }
                self.setup.wake.wake_all();
            }
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(error = %error.whole(), "the store could not be looked at")
            }
        }
    }
}
