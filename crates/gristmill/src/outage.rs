//! What is said while the store is away: one line when it goes, one a minute
//! while it stays away, one when it is back.
//!
//! Everybody who works over a mill notes here how the store answers, and when by
//! the clock it has. Noting never writes a line, so that a log nobody reads holds up
//! no heartbeat: those who may wait for a log tell.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::StoreError;

use crate::timer::Timer;

/// A store that refuses for less than this is only busy.
const SAID_AFTER: Duration = Duration::from_secs(1);
/// While it stays away that is said again.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// How long a store may take to answer before it counts as away.
const SILENCE: Duration = Duration::from_millis(1_800);
/// How often it is said how the store answers, if there is anything to say.
const TELLS: Duration = Duration::from_millis(500);

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
    /// Whether there is anything to look at.
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
    pub(crate) fn failed(&self, part: Part, error: &StoreError, now: Instant) {
        self.note(part, now, error.whole());
    }

    /// The store has not answered for so long.
    pub(crate) fn silent(&self, part: Part, silent: Duration, now: Instant) {
        self.note(part, now.checked_sub(silent).unwrap_or(now), String::new());
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

    /// The store did this. The time is asked for only where it matters: answers
    /// come by the thousand.
    pub(crate) fn answered(&self, part: Part, timer: &Timer) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        state.failing.remove(&part);
        if state.failing.is_empty() {
            let away = state.since.take().map(|since| timer.since(since));
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

    /// Waits, for time or for one answer that this part asks of the store, and says
    /// meanwhile how the store answers: one may wait for another's lock on its own,
    /// without an error. Not for several answers together: a store that is only slow
    /// is not away.
    pub(crate) async fn patiently<T>(
        &self,
        timer: &Timer,
        asks: Option<Part>,
        waited_for: impl Future<Output = T>,
    ) -> T {
        let mut waited_for = std::pin::pin!(waited_for);
        let start = timer.now();
        loop {
            let waited = timer.since(start);
            if let Some(part) = asks.filter(|_| waited >= SILENCE) {
                self.silent(part, waited, timer.now());
            }
            self.tell(timer);
            tokio::select! {
                biased;
                over = &mut waited_for => return over,
                () = timer.sleep(TELLS) => {}
            }
        }
    }

    /// Says what there is to say. Called a few times a second.
    pub(crate) fn tell(&self, timer: &Timer) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        let back = state.back.take();
        let away = state.since.map(|since| timer.since(since));
        let away = away.filter(|away| *away >= SAID_AFTER);
        let again = state.said.is_none_or(|said| timer.since(said) >= SAID_AGAIN);
        let away = away.filter(|_| again);
        let error = match state.error.as_str() {
            "" => "nothing is heard of it".to_owned(),
            error => error.to_owned(),
        };
        if away.is_some() {
            state.said = Some(timer.now());
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
    use std::sync::Arc;

    use gristmill_core::ManualClock;

    use super::*;

    fn refused() -> StoreError {
        StoreError::unavailable("away".to_owned())
    }

    fn on_a_clock() -> (Outage, Arc<ManualClock>, Timer) {
        let clock = Arc::new(ManualClock::default());
        (Outage::default(), clock.clone(), Timer::by(clock))
    }

    #[test]
    fn it_is_back_when_all_that_failed_goes_well_again() {
        let (outage, clock, timer) = on_a_clock();
        clock.advance(SAID_AGAIN);
        outage.failed(Part::Claims, &refused(), timer.now());
        outage.silent(Part::Silence, Duration::from_secs(2), timer.now());
        outage.tell(&timer);
        assert!(outage.lock().said.is_some(), "it was silent for long");
        outage.answered(Part::Sweeps, &timer);
        outage.answered(Part::Silence, &timer);
        assert!(outage.lock().back.is_none());
        clock.advance(Duration::from_secs(3));
        outage.answered(Part::Claims, &timer);
        assert_eq!(outage.lock().back, Some(Duration::from_secs(5)));
        outage.tell(&timer);
        assert!(outage.lock().back.is_none() && !outage.is_on.load(Ordering::Acquire));
    }

    #[test]
    fn a_moment_is_not_worth_a_line_and_a_minute_is_worth_another() {
        let (outage, clock, timer) = on_a_clock();
        let said = || outage.lock().said;
        outage.failed(Part::Claims, &refused(), timer.now());
        clock.advance(SAID_AFTER - Duration::from_millis(1));
        outage.tell(&timer);
        assert!(said().is_none());
        clock.advance(Duration::from_millis(1));
        outage.tell(&timer);
        let first = said();
        assert!(first.is_some());
        clock.advance(SAID_AGAIN - Duration::from_millis(1));
        outage.tell(&timer);
        assert_eq!(said(), first);
        clock.advance(Duration::from_millis(1));
        outage.tell(&timer);
        assert_eq!(said(), Some(timer.now()));
    }

    #[test]
    fn what_was_not_said_is_not_said_to_be_over() {
        let (outage, _clock, timer) = on_a_clock();
        outage.failed(Part::Claims, &refused(), timer.now());
        outage.answered(Part::Claims, &timer);
        assert!(outage.lock().back.is_none() && outage.lock().since.is_none());
    }
}
