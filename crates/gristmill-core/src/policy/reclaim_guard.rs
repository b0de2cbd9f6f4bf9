//! Whether this process may take expired leases away right now.

use std::time::Duration;

use crate::Timestamp;

/// A difference between wall and monotonic time over this is a jump.
const JUMP: Duration = Duration::from_secs(1);
/// Waiting longer than this for the write lock means others waited as well:
/// their heartbeats may be queued behind the same lock.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Watches the clock and the lock. After a jump of the wall clock, or a long
/// wait for the lock, leases look expired whose holders are alive; one
/// heartbeat interval lets them say so.
#[derive(Debug, Clone, Default)]
pub struct ReclaimGuard {
    seen: Option<(Timestamp, Duration)>,
    held_since: Option<Duration>,
}

impl ReclaimGuard {
    /// Takes note of the time, before each write.
    pub fn observe(&mut self, wall: Timestamp, monotonic: Duration, waited_for_lock: Duration) {
        if let Some((wall_before, monotonic_before)) = self.seen {
            let passed = monotonic.saturating_sub(monotonic_before);
            let expected = wall_before.after(passed);
            let off = wall.since(expected).max(expected.since(wall));
            if off > JUMP {
                self.held_since = Some(monotonic);
            }
        }
        if waited_for_lock > LOCK_WAIT {
            self.held_since = Some(monotonic);
        }
        self.seen = Some((wall, monotonic));
    }

    /// How long ago time was last distrusted; nothing when it never was.
    #[must_use]
    pub fn held_for(&self, monotonic: Duration) -> Option<Duration> {
        self.held_since.map(|since| monotonic.saturating_sub(since))
    }

    /// Whether expired leases may be taken away, for leases that are extended
    /// every `heartbeat`.
    #[must_use]
    pub fn may_reclaim(&self, monotonic: Duration, heartbeat: Duration) -> bool {
        self.held_for(monotonic).is_none_or(|passed| passed >= heartbeat)
    }
}

/// How often a lease of this length is extended.
#[must_use]
pub fn heartbeat(lease: Duration) -> Duration {
    lease / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn steady_time_never_holds_back() {
        let mut guard = ReclaimGuard::default();
        for n in 0..100u32 {
            let passed = SECOND * n * 60;
            guard.observe(Timestamp::EPOCH.after(passed), passed, Duration::ZERO);
            assert!(guard.may_reclaim(passed, SECOND * 20));
        }
    }

    #[test]
    fn a_jump_holds_back_for_one_heartbeat() {
        let mut guard = ReclaimGuard::default();
        guard.observe(Timestamp::EPOCH, Duration::ZERO, Duration::ZERO);
        guard.observe(Timestamp::EPOCH.after(SECOND * 3600), SECOND, Duration::ZERO);
        assert!(!guard.may_reclaim(SECOND * 20, SECOND * 20));
        assert!(guard.may_reclaim(SECOND * 21, SECOND * 20));
    }

    #[test]
    fn so_does_a_long_wait_for_the_lock() {
        let mut guard = ReclaimGuard::default();
        guard.observe(Timestamp::EPOCH, Duration::ZERO, SECOND * 2);
        assert!(!guard.may_reclaim(SECOND, SECOND * 20));
        assert!(guard.may_reclaim(SECOND * 20, SECOND * 20));
    }
}
