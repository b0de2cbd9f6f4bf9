//! Whether this process may take expired leases away right now.

use std::time::Duration;

use crate::{Boot, Timestamp};

/// A difference between wall and monotonic time over this is a jump.
const JUMP: Duration = Duration::from_secs(1);
/// Waiting longer than this for the write lock means others waited as well:
/// their heartbeats may be queued behind the same lock.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// A clock that jumped is believed after so long without another jump, where
/// something would be thrown away by it. Nothing that is kept for a time is urgent.
const BELIEVED: Duration = Duration::from_secs(600);

/// Watches the clock and the lock. After a jump of the wall clock, or a long
/// wait for the lock, leases look expired whose holders are alive; one
/// heartbeat interval lets them say so.
#[derive(Debug, Clone, Default)]
pub struct ReclaimGuard {
    seen: Option<(Timestamp, Duration)>,
    jumped: Option<Distrust>,
    waited: Option<Distrust>,
    went_back: bool,
}

/// Since when time is distrusted: at this monotonic time, it was for so long.
#[derive(Debug, Clone, Copy)]
struct Distrust {
    at: Duration,
    passed: Duration,
}

impl Distrust {
    const fn from(at: Duration) -> Self {
        Distrust { at, passed: Duration::ZERO }
    }

    fn held_for(self, monotonic: Duration) -> Duration {
        monotonic.saturating_sub(self.at) + self.passed
    }
}

/// What the last writer saw of the time, kept in a store that several processes
/// open: so that one that has just started knows of a jump before its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastSeen {
    /// The wall clock.
    pub wall: Timestamp,
    /// The machine's run, if that can be known.
    pub boot: Option<Boot>,
    /// Until then, in that run, a jump was so recent that leases were spared:
    /// its own time since the start of the machine.
    pub jumped: Option<Duration>,
}

impl ReclaimGuard {
    /// Whether the clock was looked at before.
    #[must_use]
    pub const fn has_looked(&self) -> bool {
        self.seen.is_some()
    }

    /// Takes up what the last writer saw, before the first look at the clock.
    /// Where it was another run of the machine, or nobody knows, it counts as a
    /// jump.
    pub fn resume(
        &mut self,
        last: &LastSeen,
        wall: Timestamp,
        boot: Option<&Boot>,
        monotonic: Duration,
    ) {
        let same = match (&last.boot, boot) {
            (Some(then), Some(now)) if then.id == now.id => Some((then.since, now.since)),
            _ => None,
        };
        let Some((then, since)) = same else {
            self.jumped = Some(Distrust::from(monotonic));
            self.went_back |= last.wall.since(wall) > JUMP;
            return;
        };
        self.compare(wall, last.wall.after(since.saturating_sub(then)), monotonic);
        if let (None, Some(jumped)) = (self.jumped, last.jumped) {
            self.jumped = Some(Distrust { at: monotonic, passed: since.saturating_sub(jumped) });
        }
    }

    /// Takes note of the time, before each write.
    pub fn observe(&mut self, wall: Timestamp, monotonic: Duration, waited_for_lock: Duration) {
        if let Some((wall_before, monotonic_before)) = self.seen {
            let passed = monotonic.saturating_sub(monotonic_before);
            self.compare(wall, wall_before.after(passed), monotonic);
        }
        self.wait(monotonic, waited_for_lock);
        self.seen = Some((wall, monotonic));
    }

    /// Takes note of a wait for the lock alone.
    pub fn wait(&mut self, monotonic: Duration, waited_for_lock: Duration) {
        if waited_for_lock > LOCK_WAIT {
            self.waited = Some(Distrust::from(monotonic));
        }
    }

    fn compare(&mut self, wall: Timestamp, expected: Timestamp, monotonic: Duration) {
        let back = expected.since(wall) > JUMP;
        if back || wall.since(expected) > JUMP {
            self.jumped = Some(Distrust::from(monotonic));
        }
        self.went_back |= back;
    }

    /// Whether the wall clock went back since the last call: then instants that
    /// are kept may lie ahead although nobody meant them to.
    pub fn take_went_back(&mut self) -> bool {
        std::mem::take(&mut self.went_back)
    }

    /// What to keep for who starts next.
    #[must_use]
    pub fn last_seen(&self, wall: Timestamp, boot: Option<Boot>, monotonic: Duration) -> LastSeen {
        let held = self.jumped.map(|jumped| jumped.held_for(monotonic));
        let jumped = boot.as_ref().zip(held).map(|(boot, held)| boot.since.saturating_sub(held));
        LastSeen { wall, boot, jumped }
    }

    /// How long ago time was last distrusted; nothing when it never was.
    #[must_use]
    pub fn held_for(&self, monotonic: Duration) -> Option<Duration> {
        let each = [self.jumped, self.waited].into_iter().flatten();
        each.map(|distrust| distrust.held_for(monotonic)).min()
    }

    /// Whether what is past its keeping time may be thrown away: a clock that is
    /// ahead for a moment would take it for good.
    #[must_use]
    pub fn may_forget(&self, monotonic: Duration) -> bool {
        self.jumped.is_none_or(|jumped| jumped.held_for(monotonic) >= BELIEVED)
    }

    /// Whether expired leases may be taken away, for leases that are extended
    /// every `heartbeat`.
    #[must_use]
    pub fn may_reclaim(&self, monotonic: Duration, heartbeat: Duration) -> bool {
        self.held_back(monotonic, heartbeat).is_none()
    }

    /// How long leases that are extended every `heartbeat` are still spared.
    #[must_use]
    pub fn held_back(&self, monotonic: Duration, heartbeat: Duration) -> Option<Duration> {
        let passed = self.held_for(monotonic)?;
        heartbeat.checked_sub(passed).filter(|left| !left.is_zero())
    }
}

/// How often a lease of this length is extended. It is less than what
/// [`spared`] gives its holder, who may have extended just before a jump: the next
/// extension takes a while to arrive.
#[must_use]
pub fn heartbeat(lease: Duration) -> Duration {
    lease / 4
}

/// How long a lease of this length is spared after a jump, so that a holder who is
/// alive says so.
#[must_use]
pub fn spared(lease: Duration) -> Duration {
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
    fn a_heartbeat_sent_just_before_a_jump_is_followed_by_another_in_time() {
        let late = Duration::from_millis(100);
        for lease in [2u32, 60, 3600] {
            assert!(heartbeat(SECOND * lease) + late < spared(SECOND * lease));
        }
    }

    #[test]
    fn nothing_is_thrown_away_soon_after_a_jump() {
        let mut guard = ReclaimGuard::default();
        guard.observe(Timestamp::EPOCH, Duration::ZERO, SECOND * 2);
        assert!(guard.may_forget(Duration::ZERO), "a busy lock says nothing of the clock");
        guard.observe(Timestamp::EPOCH.after(SECOND * 3600), SECOND, Duration::ZERO);
        assert!(!guard.may_forget(SECOND * 600));
        assert!(guard.may_forget(SECOND * 601));
    }

    #[test]
    fn so_does_a_long_wait_for_the_lock() {
        let mut guard = ReclaimGuard::default();
        guard.observe(Timestamp::EPOCH, Duration::ZERO, SECOND * 2);
        assert!(!guard.may_reclaim(SECOND, SECOND * 20));
        assert!(guard.may_reclaim(SECOND * 20, SECOND * 20));
    }

    fn boot(id: &str, since: u32) -> Boot {
        Boot { id: id.to_owned(), since: SECOND * since }
    }

    /// A process that starts 100 s after the machine, on what was seen at 50 s.
    fn started(wall: u32, id: &str, jumped: Option<u32>) -> ReclaimGuard {
        let wall = Timestamp::EPOCH.after(SECOND * wall);
        let last = LastSeen {
            wall: Timestamp::EPOCH.after(SECOND * 1_000),
            boot: Some(boot("a", 50)),
            jumped: jumped.map(|at| SECOND * at),
        };
        let mut guard = ReclaimGuard::default();
        guard.resume(&last, wall, Some(&boot(id, 100)), Duration::ZERO);
        guard.observe(wall, Duration::ZERO, Duration::ZERO);
        guard
    }

    #[test]
    fn who_starts_knows_of_a_jump_before_its_start() {
        let heartbeat = SECOND * 20;
        assert!(started(1_050, "a", None).may_reclaim(Duration::ZERO, heartbeat));
        let forward = started(8_000, "a", None);
        assert_eq!(forward.held_back(SECOND * 5, heartbeat), Some(SECOND * 15));
        let mut back = started(900, "a", None);
        assert!(!back.may_reclaim(SECOND * 19, heartbeat) && back.take_went_back());
        assert!(!started(1_050, "b", None).may_reclaim(SECOND * 19, heartbeat), "another run");
    }

    #[test]
    fn who_starts_goes_on_with_what_is_left_of_a_jump() {
        let guard = started(1_050, "a", Some(90));
        assert_eq!(guard.held_back(Duration::ZERO, SECOND * 20), Some(SECOND * 10));
        let kept = guard.last_seen(Timestamp::EPOCH, Some(boot("a", 103)), SECOND * 3);
        assert_eq!(kept.jumped, Some(SECOND * 90));
    }
}
