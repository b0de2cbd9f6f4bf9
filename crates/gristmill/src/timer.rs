//! Time for whoever waits or counts it: now, sleeping, and deadlines. By the
//! machine, or by a clock that a test moves.
//!
//! Whatever time decides in a worker, a scheduler or a manager goes through this,
//! so that tests own it. On the machine's clock it costs nothing: moments are
//! `Instant`s, and sleeps the runtime's own.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gristmill_core::{Clock, SystemClock};
use tokio::sync::watch;

/// What moments of a moved clock count from. One for all: those of two timers on
/// one clock can be compared.
static START: OnceLock<Instant> = OnceLock::new();

/// Tells the time, and waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Timer {
    clock: Arc<dyn Clock>,
    /// Of a clock that is moved by hand.
    moved: Option<watch::Receiver<Duration>>,
}

impl Default for Timer {
    fn default() -> Self {
        Timer::by(Arc::new(SystemClock::default()))
    }
}

impl Timer {
    /// By this clock.
    pub(crate) fn by(clock: Arc<dyn Clock>) -> Self {
        let moved = clock.moved();
        Timer { clock, moved }
    }

    /// The clock.
    pub(crate) const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// This moment.
    pub(crate) fn now(&self) -> Instant {
        match &self.moved {
            None => Instant::now(),
            Some(_) => moment(self.clock.monotonic()),
        }
    }

    /// How long ago a moment was.
    pub(crate) fn since(&self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }

    /// Returns at this moment.
    pub(crate) async fn sleep_until(&self, at: Instant) {
        match &self.moved {
            None => tokio::time::sleep_until(at.into()).await,
            Some(moved) => {
                // The clock is ours too, so the word cannot fail to come.
                let _ = moved.clone().wait_for(|now| moment(*now) >= at).await;
            }
        }
    }

    /// Returns after this time, counted from the call.
    pub(crate) fn sleep(&self, time: Duration) -> impl Future<Output = ()> + '_ {
        let at = self.now().checked_add(time);
        async move {
            match at {
                Some(at) => self.sleep_until(at).await,
                // Longer than a moment can be told.
                None => std::future::pending().await,
            }
        }
    }

    /// As [`Timer::sleep`] where time is moved by hand, and never otherwise: for
    /// who waits at a store, which counts the machine's time itself.
    pub(crate) async fn moved_by(&self, time: Duration) {
        match &self.moved {
            None => std::future::pending().await,
            Some(_) => self.sleep(time).await,
        }
    }

    /// What comes of it within this time.
    pub(crate) async fn within<T>(
        &self,
        time: Duration,
        waited_for: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            over = waited_for => Some(over),
            () = self.sleep(time) => None,
        }
    }
}

fn moment(monotonic: Duration) -> Instant {
    let start = *START.get_or_init(Instant::now);
    start.checked_add(monotonic).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use gristmill_core::ManualClock;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn who_sleeps_by_a_moved_clock_wakes_when_it_is_moved_so_far() {
        let clock = Arc::new(ManualClock::default());
        let timer = Timer::by(clock.clone());
        let start = timer.now();
        let mut sleeping = std::pin::pin!(timer.sleep(2 * HOUR));
        let mut is_over = async || {
            std::future::poll_fn(|context| {
                std::task::Poll::Ready(sleeping.as_mut().poll(context).is_ready())
            })
            .await
        };
        assert!(!is_over().await);
        clock.advance(HOUR);
        clock.machine_sleeps(2 * HOUR);
        assert!(!is_over().await && timer.since(start) == HOUR);
        clock.advance(HOUR);
        assert!(is_over().await && timer.since(start) == 2 * HOUR);
    }

    #[tokio::test]
    async fn what_does_not_come_in_time_is_nothing() {
        let clock = Arc::new(ManualClock::default());
        let timer = Timer::by(clock.clone());
        assert_eq!(timer.within(HOUR, async { 1 }).await, Some(1));
        let never = std::future::pending::<u8>();
        let moves = async {
            // Asked for after the wait has begun: they are polled in this order.
            clock.advance(HOUR);
        };
        let (waited, ()) = tokio::join!(timer.within(HOUR, never), moves);
        assert_eq!(waited, None);
        assert_eq!(Timer::default().within(Duration::ZERO, async { 1 }).await, Some(1));
    }
}
