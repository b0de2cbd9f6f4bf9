//! Whether others wait for a store's one writer, and how much a flush of a bulk
//! put may hold then: whoever waits, waits for a flush.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Somebody who waited within this time is thought to come again.
const LATELY: Duration = Duration::from_millis(250);
/// How long a flush may hold the lock before its sync. Where syncs are quick, so
/// are those who wait, and it is less: a sync's worth.
const LONGEST: Duration = Duration::from_millis(5);
const SHORTEST: Duration = Duration::from_micros(400);
/// Fewer tasks tell little about how long one takes. A task of the file spool takes
/// a thirtieth of a millisecond: where syncs are quick, more would be a long wait.
const FEWEST: usize = 12;
/// As long as nothing was measured.
const AT_FIRST: usize = 100;
/// While nobody waits, a flush may hold the lock for as many syncs: whoever comes
/// then was not seen before, and waits for it. Its own put takes a sync as well.
const SYNCS_ALONE: u32 = 10;
/// How much slower than it came down a sync's time goes up. Most long ones are others'
/// doing; taken for the disk's pace, they would make flushes large, which makes syncs
/// longer still.
const UPWARDS: u64 = 32;

/// What a store's writer sees of those who wait for it.
#[derive(Debug)]
pub struct Crowd {
    began: Instant,
    /// When somebody waited, in microseconds since then; nothing at first.
    waited: AtomicU64,
    /// What a task of a flush takes, in nanoseconds.
    task: AtomicU64,
    /// What a sync takes, in nanoseconds: of few tasks, and of a flush, which also
    /// writes more.
    sync: AtomicU64,
    flush_sync: AtomicU64,
}

impl Default for Crowd {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        let (task, sync, flush_sync) = (zero(), zero(), zero());
        Crowd { began: Instant::now(), waited: zero(), task, sync, flush_sync }
    }
}

impl Crowd {
    /// Somebody waits, or has just waited.
    pub fn saw(&self) {
        self.waited.store(self.micros().max(1), Ordering::Relaxed);
    }

    /// So many tasks were put, for which the lock was held so long and the disk
    /// waited for so long.
    pub fn measure(&self, tasks: usize, held: Duration, synced: Duration) {
        if tasks < FEWEST {
            learn(&self.sync, synced, UPWARDS);
            return;
        }
        learn(&self.flush_sync, synced, 4);
        // The few take no longer: one sync that took long is not believed for ever, also
        // where nothing but flushes comes after it.
        let seen = u64::try_from(synced.as_nanos()).unwrap_or(u64::MAX);
        if seen < self.sync.load(Ordering::Relaxed) {
            learn(&self.sync, synced, UPWARDS);
        }
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        // What a flush takes to sync beyond the few is its tasks' too.
        let more = match self.sync.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            sync => synced.saturating_sub(Duration::from_nanos(sync)),
        };
        learn(&self.task, (held + more) / tasks, 4);
    }

    /// Whether somebody waits, or has waited lately.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        let waited = self.waited.load(Ordering::Relaxed);
        let lately = u64::try_from(LATELY.as_micros()).unwrap_or(u64::MAX);
        waited != 0 && self.micros().saturating_sub(waited) <= lately
    }

    /// Most tasks that a flush should have now; nothing when nobody waits.
    #[must_use]
    pub fn flush_limit(&self) -> Option<usize> {
        self.is_waited_for().then(|| self.tasks_in(|sync| sync.clamp(SHORTEST, LONGEST)))
    }

    /// The same where a task takes so long that whoever comes unannounced should not
    /// wait for a flush of any size: there is always a limit.
    #[must_use]
    pub fn flush_limit_always(&self) -> usize {
        let alone = || self.tasks_in(|sync| LONGEST.max(sync.saturating_mul(SYNCS_ALONE)));
        self.flush_limit().unwrap_or_else(alone)
    }

    /// How many tasks are put in a time that follows from what a sync takes.
    fn tasks_in(&self, time: impl FnOnce(Duration) -> Duration) -> usize {
        let task = self.task.load(Ordering::Relaxed);
        if task == 0 {
            return AT_FIRST;
        }
        let sync = match self.sync.load(Ordering::Relaxed) {
            0 => self.flush_sync.load(Ordering::Relaxed),
            sync => sync,
        };
        let tasks = time(Duration::from_nanos(sync)).as_nanos() / u128::from(task);
        usize::try_from(tasks).unwrap_or(usize::MAX).max(FEWEST)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Moves a value a quarter of the way to what was seen, or a smaller part of it when it
/// goes up; only one thread does.
fn learn(value: &AtomicU64, seen: Duration, upwards: u64) {
    let most = u64::MAX / UPWARDS;
    let seen = u64::try_from(seen.as_nanos()).unwrap_or(most).clamp(1, most);
    let old = value.load(Ordering::Relaxed);
    let new = match old {
        0 => seen,
        old if seen > old => (old * (upwards - 1) + seen) / upwards,
        old => (old * 3 + seen) / 4,
    };
    value.store(new.max(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_flush_is_as_large_as_it_likes_while_nobody_waits() {
        let crowd = Crowd::default();
        crowd.measure(1_000, millis(10), millis(2));
        assert_eq!(crowd.flush_limit(), None);
        crowd.saw();
        assert!(crowd.flush_limit().is_some());
    }

    #[test]
    fn it_holds_the_lock_for_a_sync_and_five_milliseconds_at_most() {
        for (sync, most) in [(millis(40), 500), (millis(1), 100), (Duration::ZERO, 40)] {
            let crowd = Crowd::default();
            crowd.saw();
            crowd.measure(1_000, millis(10), sync);
            assert_eq!(crowd.flush_limit(), Some(most), "{sync:?}");
        }
    }

    #[test]
    fn what_a_flush_takes_to_sync_is_not_what_a_sync_takes() {
        let crowd = Crowd::default();
        crowd.saw();
        crowd.measure(1, millis(0), Duration::from_micros(1_500));
        crowd.measure(1_000, millis(10), Duration::from_micros(6_500));
        assert_eq!(crowd.flush_limit(), Some(100), "1.5 ms at 15 us a task");
    }

    #[test]
    fn a_sync_that_took_long_once_is_not_believed_for_ever() {
        let crowd = Crowd::default();
        crowd.saw();
        crowd.measure(1, millis(0), millis(30));
        for _ in 0..20 {
            crowd.measure(100, millis(3), Duration::from_micros(150));
        }
        let limit = crowd.flush_limit().expect("somebody waits");
        assert!(limit < 30, "{limit}: 30 us a task, and a sync takes 150");
    }

    /// Syncs are long now and then, beside a checkpoint or another program: flushes that
    /// grew with them would make whoever waits wait for both.
    #[test]
    fn syncs_that_are_long_for_a_while_do_not_make_flushes_long() {
        let crowd = Crowd::default();
        crowd.saw();
        crowd.measure(1, millis(0), Duration::from_micros(400));
        crowd.measure(100, millis(3), Duration::from_micros(400));
        for _ in 0..10 {
            crowd.measure(1, millis(0), millis(8));
        }
        let limit = crowd.flush_limit().expect("somebody waits");
        assert!(limit < 100, "{limit}: 30 us a task, and a sync takes 0.4 ms");
    }

    #[test]
    fn whoever_comes_unannounced_waits_for_ten_syncs_or_five_milliseconds() {
        for (sync, most) in [(millis(40), 40_000), (millis(1), 1_000), (Duration::ZERO, 500)] {
            let crowd = Crowd::default();
            assert_eq!(crowd.flush_limit_always(), AT_FIRST, "nothing was measured");
            crowd.measure(1_000, millis(10), sync);
            assert_eq!(crowd.flush_limit(), None, "{sync:?}");
            assert_eq!(crowd.flush_limit_always(), most, "{sync:?}");
            crowd.saw();
            assert!(crowd.flush_limit_always() <= 500, "{sync:?}");
        }
    }

    #[test]
    fn it_is_never_under_the_fewest() {
        let crowd = Crowd::default();
        crowd.saw();
        assert_eq!(crowd.flush_limit(), Some(AT_FIRST));
        crowd.measure(1_000, millis(10_000), millis(1));
        assert_eq!(crowd.flush_limit(), Some(FEWEST));
    }
}
