//! The PostgreSQL store's tests: the common behaviours, and what only it has.
//! They run on a throw-away server of the system's own packages.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken expectation ends the test at its line"
)]

mod alone;
mod arguments;
mod beside;
mod cancels;
mod committed_change;
mod company;
mod conformance;
mod crash;
mod damaged;
mod defaults;
mod definitions;
mod failover;
mod held;
mod migrations;
mod patroni;
mod plain;
mod plans;
mod policy;
mod power_cut;
mod rights;
mod silence;
mod slots;
mod snapshot;
mod sqlx;
mod standby;
mod subject_binding;
mod subject_isolation;
mod subject_load;
mod subject_races;
mod subject_rights;
mod subject_sweep;
mod subjects;
mod support;
mod surface;
mod tls;
mod traffic;
mod transactions;
mod wake;
