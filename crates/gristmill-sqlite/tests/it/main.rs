//! The SQLite store from outside: the behaviours every store must show, and
//! what only a file of SQLite can do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests: a broken expectation ends the test at its line"
)]

mod backups;
mod batches;
mod blocked;
mod checks;
mod claim_cost;
mod clock;
mod conformance;
mod crash;
mod damaged;
mod files;
mod full_disk;
mod group_commit;
mod handles;
mod looking;
mod minutes;
mod moved;
mod subjects;
mod support;
mod transactions;
mod wake;
