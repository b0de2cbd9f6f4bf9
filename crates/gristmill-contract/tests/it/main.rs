//! Contracts as their writers meet them: what is refused and in which words,
//! what changes break, and what travels.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests assert by panicking, in helpers too"
)]

mod broken;
mod evolution;
mod fuzz;
mod languages;
mod property;
mod sample;
mod speed;
