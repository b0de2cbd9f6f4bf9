//! What each route does, a subject a file.

pub(crate) mod about;
pub(crate) mod audit;
pub(crate) mod claims;
pub(crate) mod events;
pub(crate) mod extensions;
pub(crate) mod health;
pub(crate) mod narrow;
pub(crate) mod operate;
pub(crate) mod poll;
pub(crate) mod port;
pub(crate) mod put;
pub(crate) mod queues;
pub(crate) mod schedules;
pub(crate) mod settlements;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod tasks;

use gristmill::Timestamp;
use gristmill::port::{Clock, SystemClock};

/// Now, by this machine: for what is shown, never for what is decided.
pub(crate) fn now() -> Timestamp {
    SystemClock::default().now()
}
