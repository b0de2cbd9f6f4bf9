//! When a program that fell is started again, and when no more: a pure account of how
//! its starts went.

use std::time::{Duration, Instant};

/// Deaths before ready after which it is tried no more.
const UNREADY_MOST: u32 = 3;
/// The wait after the first fall, doubled with each that follows.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// How the starts of one command went.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Ends before ready, since the last that was.
    unready: u32,
    /// Falls since the last task that was answered.
    falls: u32,
    not_before: Option<Instant>,
}

impl Starts {
    /// How long the next start waits.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// One became ready.
    pub(super) fn ready(&mut self) {
        self.unready = 0;
    }

    /// One answered a task.
    pub(super) fn answered(&mut self) {
        (self.falls, self.not_before) = (0, None);
    }

    /// One died, was killed, or had to be.
    pub(super) fn fell(&mut self, now: Instant) {
        let wait = FIRST.saturating_mul(1 << self.falls.min(16));
        self.falls = self.falls.saturating_add(1);
        self.not_before = Some(now + wait.min(LONGEST));
    }

    /// One ended before it was ready. Says whether that was once too often.
    pub(super) fn fell_unready(&mut self, now: Instant) -> bool {
        self.fell(now);
        self.unready = self.unready.saturating_add(1);
        self.unready >= UNREADY_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_wait_longer_until_one_answers() {
        let (mut starts, now) = (Starts::default(), Instant::now());
        assert_eq!(starts.wait(now), Duration::ZERO);
        let mut waits = Vec::new();
        for _ in 0..8 {
            starts.fell(now);
            waits.push(starts.wait(now).as_millis());
        }
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(starts.wait(now + LONGEST), Duration::ZERO);
        // Ready alone is not enough: it may fall with each task.
        starts.ready();
        starts.fell(now);
        assert_eq!(starts.wait(now), LONGEST);
        starts.answered();
        assert_eq!(starts.wait(now), Duration::ZERO);
    }

    #[test]
    fn three_in_a_row_that_were_never_ready_are_enough() {
        let (mut starts, now) = (Starts::default(), Instant::now());
        assert!(!starts.fell_unready(now) && !starts.fell_unready(now));
        starts.ready();
        assert!(!starts.fell_unready(now) && !starts.fell_unready(now));
        assert!(starts.fell_unready(now));
    }
}
