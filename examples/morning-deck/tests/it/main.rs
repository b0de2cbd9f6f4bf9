//! What the application promises, end to end: real feeds, pages, search and
//! mail from local servers, rows in SQLite, and the queues both in the same
//! file and in memory. Time moves when a test moves it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod admin;
mod backpressure;
mod briefing;
mod crash;
mod desk;
mod enrich;
mod fetch;
mod post;
mod program;
mod recovery;
mod settings;
mod stop;
mod test_ai;
mod tls;
