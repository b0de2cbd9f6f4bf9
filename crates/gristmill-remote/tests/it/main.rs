//! What travels, and what is said of a service that does not answer.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests assert by panicking, in helpers too"
)]

mod dice;
mod faults;
mod round_trip;
