//! The file spool from outside: the behaviours every store must show, and what
//! only a folder of files can do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests: a broken expectation ends the test at its line"
)]

mod conformance;
mod crash;
mod full_disk;
mod support;
