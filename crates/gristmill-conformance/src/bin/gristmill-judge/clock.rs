//! A wall clock that jumps when a file says so: for all processes of a run at
//! once, as the clock of a machine does, and for nothing else on it.

use std::path::PathBuf;
use std::time::Duration;

use gristmill::port::{Boot, Clock, SystemClock, Timestamp};

/// The machine's clock, and a file with the microseconds by which it is wrong.
#[derive(Debug)]
pub(crate) struct JumpingClock {
    machine: SystemClock,
    file: PathBuf,
}

impl JumpingClock {
    pub(crate) fn new(file: PathBuf) -> Self {
        JumpingClock { machine: SystemClock::default(), file }
    }

    fn offset(&self) -> i64 {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.machine.now().as_micros() + self.offset())
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }

    fn awake_or_asleep(&self) -> Duration {
        self.machine.awake_or_asleep()
    }

    fn boot(&self) -> Option<Boot> {
        self.machine.boot()
    }
}
