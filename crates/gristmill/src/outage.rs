//! What is said while the store is away: one line when it goes, one a minute
//! while it stays away, one when it is back.
//!
//! Everybody who works over a mill notes here how the store answers. Noting never
//! writes a line, so that a log nobody reads holds up no heartbeat: those who may
//! wait for a log tell.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::StoreError;

/// A store that refuses for less than this is only busy.
const SAID_AFTER: Duration = Duration::from_secs(1);
/// While it stays away that is said again.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// What is asked of a store by itself: it is back when everything goes well
/// again that went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Claims,
    Settlements,
    Leases,
    Sweeps,
    Schedules,
    Manager,
    /// It does not say anything at all.
    Silence,
}

/// How a mill's store answers.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Whether there is anything to look at: answers come by the thousand.
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failing: HashSet<Part>,
    since: Option<Instant>,
    error: String,
    said: Option<Instant>,
    /// It is back after this time, and that was not said yet.
    back: Option<Duration>,
}

impl Outage {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an error means that the store is away, and not that it was asked
    /// for something it cannot do.
    pub(crate) fn means(error: &StoreError) -> bool {
        error.is_retryable() || !error.wrote_nothing()
    }

    /// The store did not do this now.
    pub(crate) fn failed(&self, part: Part, error: &StoreError) {
        self.note(part, Instant::now(), error.to_string());
    }

    /// The store has not answered for so long.
    pub(crate) fn silent(&self, part: Part, silent: Duration) {
        let since = Instant::now().checked_sub(silent).unwrap_or_else(Instant::now);
        self.note(part, since, String::new());
    }

    fn note(&self, part: Part, since: Instant, error: String) {
        let mut state = self.lock();
        self.is_on.store(true, Ordering::Release);
        state.failing.insert(part);
        // What it said is a better reason than that it says nothing.
        if !error.is_empty() {
            state.error = error;
        }
        state.since = Some(state.since.map_or(since, |earlier| earlier.min(since)));
    }

    /// The store did this.
    pub(crate) fn answered(&self, part: Part) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        state.failing.remove(&part);
        if state.failing.is_empty() {
            let away = state.since.take().map(|since| since.elapsed());
            if state.said.take().is_some() {
                state.back = away;
            }
            state.error.clear();
            self.is_on.store(state.back.is_some(), Ordering::Release);
        }
    }

    /// Whoever asked for these asks no more.
    pub(crate) fn leave(&self, parts: &[Part]) {
        let mut state = self.lock();
        state.failing.retain(|part| !parts.contains(part));
        if state.failing.is_empty() {
            let back = state.back.take();
            *state = State { back, ..State::default() };
        }
    }

    /// Says what there is to say. Called a few times a second.
    pub(crate) fn tell(&self) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        let back = state.back.take();
        let away = state.since.map(|since| since.elapsed()).filter(|away| *away >= SAID_AFTER);
        let again = state.said.is_none_or(|said| said.elapsed() >= SAID_AGAIN);
        let away = away.filter(|_| again);
        let error = match state.error.as_str() {
            "" => "nothing is heard of it".to_owned(),
            error => error.to_owned(),
        };
        if away.is_some() {
            state.said = Some(Instant::now());
        }
        self.is_on.store(!state.failing.is_empty(), Ordering::Release);
        // Writing a line may take its time.
        drop(state);
        if let Some(away) = back {
            tracing::warn!("the store answers again after {away:.1?}");
        }
        if let Some(away) = away {
            tracing::warn!(
                error,
                "the store does not answer, for {away:.1?} now; it is waited for"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> StoreError {
        StoreError::Unavailable("away".to_owned())
    }

    #[test]
    fn it_is_back_when_all_that_failed_goes_well_again() {
        let outage = Outage::default();
        outage.failed(Part::Claims, &refused());
        outage.silent(Part::Silence, Duration::from_secs(2));
        outage.tell();
        assert!(outage.lock().said.is_some(), "it was silent for long");
        outage.answered(Part::Sweeps);
        outage.answered(Part::Silence);
        assert!(outage.lock().back.is_none());
        outage.answered(Part::Claims);
        assert!(outage.lock().back.is_some_and(|away| away >= Duration::from_secs(2)));
        outage.tell();
        assert!(outage.lock().back.is_none() && !outage.is_on.load(Ordering::Acquire));
    }

    #[test]
    fn a_moment_is_not_worth_a_line() {
        let outage = Outage::default();
        outage.failed(Part::Claims, &refused());
        outage.tell();
        assert!(outage.lock().said.is_none());
        outage.answered(Part::Claims);
        assert!(outage.lock().back.is_none() && outage.lock().since.is_none());
    }
}
