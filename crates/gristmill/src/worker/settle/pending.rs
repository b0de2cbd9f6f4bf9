//! Attempts that ended and are not on record yet, on their way to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_core::Settlement;

use crate::worker::claim::served::Served;
use crate::worker::handler::context::Context;
use crate::worker::heartbeat::lease::Lease;

/// How long a lease is extended for a settlement that is on its way: as long as a
/// store may take to answer, and more.
const ON_ITS_WAY: Duration = Duration::from_secs(60);

/// An attempt that ended and is not on record yet.
pub(crate) struct Pending {
    pub(crate) served: Arc<Served>,
    pub(crate) context: Context,
    pub(crate) settlement: Settlement,
}

/// Their leases are worth extending while the store is asked.
pub(crate) fn tend(list: &[Pending], now: Instant) {
    let until = now + ON_ITS_WAY;
    let mut before: Option<&Arc<Lease>> = None;
    for lease in list.iter().map(|pending| pending.context.lease()) {
        if !before.is_some_and(|before| Arc::ptr_eq(before, lease)) {
            lease.tended_until(until);
        }
        before = Some(lease);
    }
}

/// Settlements that the store has, until this is dropped.
pub(crate) struct Asked<'a>(&'a AtomicU64, u64);

impl<'a> Asked<'a> {
    pub(crate) fn new(asked: &'a AtomicU64, settlements: u64) -> Self {
        asked.fetch_add(settlements, Ordering::AcqRel);
        Asked(asked, settlements)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
    }
}
