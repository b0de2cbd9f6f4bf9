//! What a service says of itself to who opens it as a store.

use gristmill_core::{Capabilities, Limits, Timestamp};

/// What a service says of itself to who opens it as a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its form of the port.
    pub port: u32,
    /// The oldest form it understands.
    pub oldest: u32,
    /// Which Gristmill it is, for people.
    pub version: String,
    /// What its store can do.
    pub capabilities: Capabilities,
    /// Its store's limits.
    pub limits: Limits,
    /// Most bytes of one request.
    pub body_bytes: usize,
    /// Now, by its store's clock.
    pub now: Timestamp,
}

record!(About { port, oldest, version, capabilities, limits, body_bytes, now });
record!(Capabilities {
    survives_kill,
    survives_power_cut,
    several_processes,
    put_in_transaction,
    bound_subjects,
    atomic_follow_ups,
    exact_capacity,
    pushes_across_processes,
    passes_by,
    meant_for,
});
record!(Limits {
    payload_bytes,
    text_bytes,
    headers_bytes,
    put_tasks,
    claim_tasks,
    claim_bytes,
    checkpoint_bytes,
    result_bytes,
    settlements,
    page,
    looks,
    error_bytes,
    history,
    wait,
    started_releases,
    reclaimed_leases,
});
