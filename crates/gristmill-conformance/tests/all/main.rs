//! The suite on the memory store, and the suite itself under test: each seeded
//! defect must be caught by the rule it breaks.

#![expect(clippy::expect_used, reason = "tests: a broken expectation ends the test at its line")]

mod defects;
mod judge;
mod list;
mod memory;
#[cfg(feature = "program")]
mod processes;
