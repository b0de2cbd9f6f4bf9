//! The behaviours every Gristmill store must show, as a library.
//!
//! A store's test file is a few lines: it says how to open the store
//! ([`Harness`]) and calls [`suite!`], which makes one test of every behaviour,
//! and [`history::agree`], which plays random histories on the store and on the
//! memory store and compares every answer.
//!
//! ```text
//! gristmill_conformance::suite!(MyHarness::default());
//!
//! #[test]
//! fn histories_agree() {
//!     history::agree(&MyHarness::default(), history::cases());
//! }
//! ```
//!
//! Behaviours are named after the rule they show (`rule_06_…`) or the verb
//! (`verb_list_…`). They own the clock and never sleep. After each of them the
//! store is audited: its kept counts against its tasks, and its tasks against
//! what must always be true.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this crate asserts: a broken expectation ends the test at its line"
)]

mod audit;
mod behaviour;
mod clock;
pub mod crash;
mod fixture;
mod handle;
mod harness;
pub mod history;
pub mod judge;
mod run;
mod shape;
pub mod short;
pub mod small_disk;
pub mod wake;

pub use behaviour::{Behaviour, Running, behaviours};
pub use harness::Harness;
pub use run::{Failure, LIMIT, check, run};
