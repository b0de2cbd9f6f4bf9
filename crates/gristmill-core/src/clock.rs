//! Where time comes from, so that tests own it.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::Timestamp;

/// Where time comes from. A store's clock alone decides leases and due times; by
/// a worker's, a scheduler's or a manager's they pace themselves and keep their
/// deadlines.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Now, by the wall.
    fn now(&self) -> Timestamp;

    /// Time that only moves forward and ignores changes of the wall clock.
    /// Comparing both is how a jump is noticed (see
    /// [`crate::policy::reclaim_guard`]).
    fn monotonic(&self) -> Duration;

    /// As [`Clock::monotonic`], from another start, and it goes on while the
    /// machine sleeps. By it the holder of a lease knows when the lease is over:
    /// the store's clock did not sleep.
    fn awake_or_asleep(&self) -> Duration {
        self.monotonic()
    }

    /// The machine's run and how long it has lasted, sleep included, if that can
    /// be known. Two processes of one run compare their wall clocks by it.
    fn boot(&self) -> Option<Boot> {
        None
    }

    /// Of a clock that somebody moves: what [`Clock::monotonic`] says, heard of
    /// each time it is moved. Whoever sleeps by such a clock wakes by that. None
    /// where time passes by itself.
    fn moved(&self) -> Option<watch::Receiver<Duration>> {
        None
    }
}

/// One run of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Which one.
    pub id: String,
    /// How long it has lasted.
    pub since: Duration,
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH.after(since)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    #[cfg(target_os = "linux")]
    fn awake_or_asleep(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(time).unwrap_or_else(|_| self.monotonic())
    }

    fn boot(&self) -> Option<Boot> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let uptime = read("/proc/uptime")?;
        let since = uptime.split_whitespace().next()?.parse().ok()?;
        Some(Boot {
            id: read("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            since: Duration::try_from_secs_f64(since).ok()?,
        })
    }
}

/// A clock that moves only when told to. Workers, schedulers and managers that
/// have it sleep until it is moved.
#[derive(Debug)]
pub struct ManualClock {
    time: Mutex<Time>,
    moved: watch::Sender<Duration>,
}

#[derive(Debug)]
struct Time {
    wall: Timestamp,
    awake: Duration,
    asleep: Duration,
}

impl ManualClock {
    /// A clock standing at `start`.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        let time = Time { wall: start, awake: Duration::ZERO, asleep: Duration::ZERO };
        ManualClock { time: Mutex::new(time), moved: watch::Sender::new(Duration::ZERO) }
    }

    /// Lets time pass, and wakes who slept until then.
    pub fn advance(&self, by: Duration) {
        let mut time = self.lock();
        time.wall = time.wall.after(by);
        time.awake += by;
        // Within the lock: what was moved first is heard of first.
        self.moved.send_replace(time.awake);
    }

    /// Lets the machine sleep for so long: the wall clock goes on and leases run
    /// out, but nobody wakes for it.
    pub fn machine_sleeps(&self, by: Duration) {
        let mut time = self.lock();
        time.wall = time.wall.after(by);
        time.asleep += by;
    }

    /// Sets the wall clock as an administrator or NTP would: no time passes.
    pub fn set_wall(&self, to: Timestamp) {
        self.lock().wall = to;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Time> {
        // Plain numbers are valid whatever a panicking holder did.
        self.time.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    /// Stands at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(Timestamp::from_micros(1_767_225_600_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().wall
    }

    fn monotonic(&self) -> Duration {
        self.lock().awake
    }

    fn awake_or_asleep(&self) -> Duration {
        let time = self.lock();
        time.awake + time.asleep
    }

    fn boot(&self) -> Option<Boot> {
        Some(Boot { id: "manual".to_owned(), since: self.awake_or_asleep() })
    }

    fn moved(&self) -> Option<watch::Receiver<Duration>> {
        Some(self.moved.subscribe())
    }
}
