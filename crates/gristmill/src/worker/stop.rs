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
use tokio::time::Instant;

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
pub(super) enum Phase {
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
pub(super) struct Stop {
    phase: watch::Sender<Phase>,
    within: Duration,
    force: Force,
}

impl Stop {
    pub(super) fn new(within: Duration, force: Force) -> Self {
        Stop { phase: watch::Sender::default(), within, force }
    }

    /// No more claims.
    pub(super) fn ask(&self) {
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
    pub(super) async fn keep_time(&self) {
        self.reached(Phase::Asked).await;
        let _ = tokio::time::timeout(self.within, self.force.said()).await;
        let over = Instant::now();
        self.enter(Phase::Cancels);
        for (after, phase) in
            [(LEAVES, Phase::Leaves), (GIVES_UP, Phase::GivesUp), (IS_OVER, Phase::Over)]
        {
            tokio::time::sleep_until(over + after).await;
            self.enter(phase);
        }
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(super) fn is_asked(&self) -> bool {
        self.phase() >= Phase::Asked
    }

    /// Returns when it has come so far.
    pub(super) async fn reached(&self, phase: Phase) {
        // The sender is `self`, so it cannot go away meanwhile.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Returns when the stop is asked for.
    pub(super) async fn asked(&self) {
        self.reached(Phase::Asked).await;
    }

    /// Returns when it has come further than this.
    pub(super) async fn beyond(&self, phase: Phase) {
        let _ = self.phase.subscribe().wait_for(|now| *now > phase).await;
    }

    /// Last words to a store: they may take this long, and not beyond the end of
    /// a stop.
    pub(super) async fn farewell<T>(
        &self,
        within: Duration,
        words: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            said = words => Some(said),
            () = self.reached(Phase::Over) => None,
            () = tokio::time::sleep(within) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waits again and again, each time anew, must not wait for ever.
    #[tokio::test]
    async fn the_end_comes_whoever_begins_to_wait_anew() {
        let stop = Arc::new(Stop::new(Duration::ZERO, Force::default()));
        let clock = tokio::spawn({
            let stop = stop.clone();
            async move { stop.keep_time().await }
        });
        stop.ask();
        let start = Instant::now();
        let mut turns = 0;
        loop {
            tokio::select! {
                () = stop.reached(Phase::GivesUp) => break,
                () = tokio::time::sleep(Duration::from_millis(10)) => turns += 1,
            }
        }
        assert!(turns > 10 && start.elapsed() < STOP_NOW);
        clock.await.unwrap();
        assert!(start.elapsed() < STOP_NOW && stop.phase() == Phase::Over);
    }

    #[tokio::test]
    async fn a_force_that_was_said_before_is_heard() {
        let stop = Stop::new(Duration::from_secs(60), Force::default());
        stop.force.now();
        stop.ask();
        stop.keep_time().await;
        assert_eq!(stop.phase(), Phase::Over);
    }
}
