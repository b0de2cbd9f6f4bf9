//! Where time comes from, so that tests own it.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// The clock of a store. It alone decides leases and due times.
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

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    time: Mutex<(Timestamp, Duration)>,
}

impl ManualClock {
    /// A clock standing at `start`.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        ManualClock { time: Mutex::new((start, Duration::ZERO)) }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let mut time = self.lock();
        time.0 = time.0.after(by);
        time.1 += by;
    }

    /// Sets the wall clock as an administrator or NTP would: no time passes.
    pub fn set_wall(&self, to: Timestamp) {
        self.lock().0 = to;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Timestamp, Duration)> {
        // Two plain numbers are valid whatever a panicking holder did.
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
        self.lock().0
    }

    fn monotonic(&self) -> Duration {
        self.lock().1
    }

    fn boot(&self) -> Option<Boot> {
        Some(Boot { id: "manual".to_owned(), since: self.lock().1 })
    }
}
