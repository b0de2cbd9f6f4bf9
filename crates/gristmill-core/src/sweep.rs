//! What a store tidies up by itself, about once a second.

use std::time::Duration;

use crate::TaskId;

/// What one sweep found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// Tasks whose lease had run out and that went back or failed.
    pub reclaimed: u64,
    /// Of them, those that failed for good. Nobody else is told.
    pub failed: Vec<TaskId>,
    /// Tasks that fell due and are now counted as ready.
    pub promoted: u64,
    /// Blocked tasks whose key had become free unnoticed.
    pub unblocked: u64,
    /// Puts that a transaction had answered as duplicates, and whose task ran
    /// before it committed: they stand now. Only PostgreSQL has them.
    pub put_again: u64,
    /// Tasks of bound subjects that went without the store's being told.
    pub without_subject: u64,
    /// Callers' ids past their time, and windows of keys that are over.
    pub forgotten_ids: u64,
    /// Kept done and resolved tasks past their time.
    pub pruned_done: u64,
    /// Failed tasks past their queue's `keep_failed`.
    pub pruned_failed: u64,
    /// Endings of tasks past their keeping time.
    pub forgotten_endings: u64,
    /// Documents past their keeping time: workers not heard of for long.
    pub forgotten_documents: u64,
    /// How long the oldest transaction is open that keeps dead rows of the
    /// store from being removed, zero for none; only PostgreSQL knows.
    pub oldest_transaction: Option<Duration>,
    /// For so long nothing falls due, unless whoever waits is woken meanwhile:
    /// until then another sweep would do nothing. None where that is not known.
    pub quiet: Option<Duration>,
}

impl SweepReport {
    /// Whether it changed anything.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let SweepReport { oldest_transaction, quiet, .. } = *self;
        *self == SweepReport { oldest_transaction, quiet, ..Self::default() }
    }
}
