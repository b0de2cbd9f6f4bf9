//! The example end to end: its own scripts, run as their user would, on a
//! database of the test's own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests assert"
)]

mod crash;
mod demo;
mod kitchen;
mod languages;
mod nightly;
mod sources;
