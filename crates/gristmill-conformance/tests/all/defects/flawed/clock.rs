//! A clock that can be ahead of the one the behaviours own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_core::{Clock, Timestamp};

/// The behaviours' clock, and how far this one is ahead of it.
#[derive(Debug)]
pub(super) struct SkewedClock {
    base: Arc<dyn Clock>,
    ahead: AtomicU64,
}

impl SkewedClock {
    pub(super) fn new(base: Arc<dyn Clock>) -> Self {
        SkewedClock { base, ahead: AtomicU64::new(0) }
    }

    pub(super) fn set_ahead(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).expect("a short time");
        self.ahead.store(micros, Ordering::Relaxed);
    }

    fn ahead(&self) -> Duration {
        Duration::from_micros(self.ahead.load(Ordering::Relaxed))
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        self.base.now().after(self.ahead())
    }

    fn monotonic(&self) -> Duration {
        self.base.monotonic() + self.ahead()
    }
}
