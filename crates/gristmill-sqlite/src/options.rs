//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Clock, Limits, SystemClock};

/// What can be said when a store is opened. The defaults suit everyone.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// The store's limits.
    pub limits: Limits,
    /// How long another process's write is waited for before the answer is
    /// *busy*.
    pub busy_timeout: Duration,
    /// How long a disk that gives no sign is waited for. After that a read is
    /// *unavailable*, a write *unknown*, and calls are refused until it answers
    /// again. More than `busy_timeout`, which ends a wait for the lock.
    pub answer_within: Duration,
    /// Whether a missing file is made. Without it, a missing file is an error
    /// rather than an empty store where a full one was expected.
    pub create: bool,
    /// Most requests that share one commit.
    pub group: usize,
    /// How often other processes' commits are looked for while somebody waits:
    /// beneath hearing of them, for what nobody told.
    pub look: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Arc::new(SystemClock::default()),
            limits: Limits::default(),
            busy_timeout: Duration::from_secs(30),
            answer_within: Duration::from_secs(60),
            create: true,
            group: 1024,
            look: Duration::from_millis(40),
        }
    }
}
