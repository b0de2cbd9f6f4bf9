//! Attempts that ended and are not on record yet, on their way to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_core::Settlement;

use super::context::Context;
use super::lease::Lease;
use super::served::Served;

/// How long a lease is extended for a settlement that is on its way: as long as a
/// store may take to answer, and more.
const ON_ITS_WAY: Duration = Duration::from_secs(60);

/// An attempt that ended and is not on record yet.
pub(super) struct Pending {
    pub(super) served: Arc<Served>,
    pub(super) context: Context,
    pub(super) settlement: Settlement,
}

/// Their leases are worth extending while the store is asked.
pub(super) fn tend(list: &[Pending], now: Instant) {
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
pub(super) struct Asked<'a>(&'a AtomicU64, u64);

impl<'a> Asked<'a> {
    pub(super) fn new(asked: &'a AtomicU64, settlements: u64) -> Self {
        asked.fetch_add(settlements, Ordering::AcqRel);
        Asked(asked, settlements)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
    }
}
