//! What a store can do beyond the rules that all stores keep.

use std::time::Duration;

/// A store's declared differences. The conformance suite asserts each both
/// ways: what is claimed works, and what is denied says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// An acknowledged put or settlement survives a killed process.
    pub survives_kill: bool,
    /// ... and a power cut.
    pub survives_power_cut: bool,
    /// Several processes may use the store at once.
    pub several_processes: bool,
    /// A put can join the caller's own transaction.
    pub put_in_transaction: bool,
    /// A queue can be bound to a table of the application.
    pub bound_subjects: bool,
    /// A settlement and its follow-ups come true together.
    pub atomic_follow_ups: bool,
    /// Capacity is never overrun, not even by puts that are in flight.
    pub exact_capacity: bool,
    /// A put in another process wakes a waiting worker without its polling.
    pub pushes_across_processes: bool,
    /// For how long claims of one process may pass by a task that another process
    /// puts before those they have come to, because they go on where they were.
    /// Longer only beside a transaction that keeps very many dead rows.
    pub passes_by: Duration,
    /// How many tasks it is meant for.
    pub meant_for: u64,
}
