//! The file spool from outside: the behaviours every store must show, and what
//! only a folder of files can do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests: a broken expectation ends the test at its line"
)]

mod claim_cost;
mod clock;
mod conformance;
mod crash;
mod folder;
mod full_disk;
mod handles;
mod in_turns;
mod moved;
mod segment;
mod spares;
mod support;
mod wake;
