//! The throw-away server, used as tests use it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a failed expectation should fail the test"
)]

mod bouncer;
mod database;
mod ending;
mod private;
mod proxy;
