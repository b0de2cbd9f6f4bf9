//! Stopping: asked, patient for a while, then short, and then over whatever the
//! store or a handler does.
//!
//! ```text
//!   works ─► asked ───────────────► cancels ──1s──► leaves ─.5s─► gives up ─.2s─► over
//!            no more claims         handlers are    deaf ones     the store is    whoever
//!            `stop_within`,         told to end     are left      waited for      waits gets
//!            or a second signal                     alone         no more         the report
//! ```
//!
//! One clock for all of it, begun once: nobody who waits begins it anew. It runs
//! on the heartbeat's thread, so that handlers which block every thread of the
//! runtime do not hold it up.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::timer::Timer;

/// How long a stop takes at most once the patience is over.
pub const STOP_NOW: Duration = Duration::from_secs(2);

/// A cancelled handler is left alone after this time.
const LEAVES: Duration = Duration::from_millis(1_000);
/// The store is waited for until then.
const GIVES_UP: Duration = Duration::from_millis(1_500);
/// All that is left is not waited for from then on: within [`STOP_NOW`].
const IS_OVER: Duration = Duration::from_millis(1_700);

/// Ends the patience of a graceful stop, from anywhere.
#[derive(Debug, Clone, Default)]
pub struct Force(Arc<watch::Sender<bool>>);

impl Force {
    /// Cancel what still runs, now.
    pub fn now(&self) {
        // Kept for a worker that comes to its stop later.
        self.0.send_replace(true);
    }

    /// Returns when it was said.
    pub(crate) async fn said(&self) {
        let _ = self.0.subscribe().wait_for(|said| *said).await;
    }
}

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Phase {
    /// Nobody asked for it.
    #[default]
    Works,
    /// Nothing more is claimed.
    Asked,
    /// The patience is over: handlers are cancelled.
    Cancels,
    /// Handlers that did not come to an end are left alone.
    Leaves,
    /// The store is waited for no more.
    GivesUp,
    /// Nothing is waited for any more.
    Over,
}

#[derive(Debug)]
pub(crate) struct Stop {
    phase: watch::Sender<Phase>,
    within: Duration,
    force: Force,
    timer: Timer,
}

impl Stop {
    pub(crate) fn new(within: Duration, force: Force, timer: Timer) -> Self {
        Stop { phase: watch::Sender::default(), within, force, timer }
    }

    /// No more claims.
    pub(crate) fn ask(&self) {
        self.enter(Phase::Asked);
    }

    fn enter(&self, phase: Phase) {
        // It never goes back.
        self.phase.send_if_modified(|now| {
            let further = *now < phase;
            *now = phase.max(*now);
            further
        });
    }

    /// Waits for the stop, and then lets it come to its end.
    pub(crate) async fn keep_time(&self) {
        self.reached(Phase::Asked).await;
        let _ = self.timer.within(self.within, self.force.said()).await;
        let over = self.timer.now();
        self.enter(Phase::Cancels);
        for (after, phase) in
            [(LEAVES, Phase::Leaves), (GIVES_UP, Phase::GivesUp), (IS_OVER, Phase::Over)]
        {
            self.timer.sleep_until(over + after).await;
            self.enter(phase);
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.phase() >= Phase::Asked
    }

    /// Returns when it has come so far.
    pub(crate) async fn reached(&self, phase: Phase) {
        // The sender is `self`, so it cannot go away meanwhile.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Returns when the stop is asked for.
    pub(crate) async fn asked(&self) {
        self.reached(Phase::Asked).await;
    }

    /// Returns when it has come further than this.
    pub(crate) async fn beyond(&self, phase: Phase) {
        let _ = self.phase.subscribe().wait_for(|now| *now > phase).await;
    }

    /// Last words to a store: they may take this long, and not beyond the end of
    /// a stop.
    pub(crate) async fn farewell<T>(
        &self,
        within: Duration,
        words: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            said = words => Some(said),
            () = self.reached(Phase::Over) => None,
            () = self.timer.sleep(within) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::ManualClock;

    use super::*;

    const A_MINUTE: Duration = Duration::from_secs(60);

    fn on_a_clock(within: Duration) -> (Arc<Stop>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let timer = Timer::by(clock.clone());
        (Arc::new(Stop::new(within, Force::default(), timer)), clock)
    }

    /// Whoever waits again and again, each time anew, must not wait for ever.
    #[tokio::test]
    async fn the_end_comes_whoever_begins_to_wait_anew() {
        let (stop, clock) = on_a_clock(Duration::ZERO);
        stop.ask();
        let keeps = tokio::spawn({
            let stop = stop.clone();
            async move { stop.keep_time().await }
        });
        stop.reached(Phase::Cancels).await;
        let (step, mut turns) = (Duration::from_millis(10), 0);
        loop {
            tokio::select! {
                biased;
                () = stop.reached(Phase::GivesUp) => break,
                () = stop.timer.sleep(step) => {}
                () = async {
                    clock.advance(step);
                    turns += 1;
                    tokio::task::yield_now().await;
                } => {}
            }
        }
        let took = clock_of(&clock);
        assert!(turns > 10 && took >= GIVES_UP && took < IS_OVER, "{turns} turns in {took:?}");
        clock.advance(IS_OVER);
        keeps.await.unwrap();
        assert_eq!(stop.phase(), Phase::Over);
    }

    fn clock_of(clock: &ManualClock) -> Duration {
        gristmill_core::Clock::monotonic(clock)
    }

    #[tokio::test]
    async fn the_patience_ends_by_the_clock_and_not_before() {
        let (stop, clock) = on_a_clock(A_MINUTE);
        stop.ask();
        let mut keeps = std::pin::pin!(stop.keep_time());
        let mut phase_after = async |by| {
            clock.advance(by);
            for _ in 0..3 {
                tokio::select! {
                    biased;
                    () = &mut keeps => {}
                    () = tokio::task::yield_now() => {}
                }
            }
            stop.phase()
        };
        assert_eq!(phase_after(Duration::ZERO).await, Phase::Asked);
        assert_eq!(phase_after(A_MINUTE - Duration::from_millis(1)).await, Phase::Asked);
        assert_eq!(phase_after(Duration::from_millis(1)).await, Phase::Cancels);
        assert_eq!(phase_after(LEAVES).await, Phase::Leaves);
        assert_eq!(phase_after(GIVES_UP - LEAVES).await, Phase::GivesUp);
    }

    #[tokio::test]
    async fn a_force_that_was_said_before_is_heard() {
        let (stop, clock) = on_a_clock(A_MINUTE);
        stop.force.now();
        stop.ask();
        let ends = async {
            stop.reached(Phase::Cancels).await;
            clock.advance(IS_OVER);
        };
        tokio::join!(stop.keep_time(), ends);
        assert_eq!((stop.phase(), clock_of(&clock)), (Phase::Over, IS_OVER));
    }
}
