//! What the application promises, as its user sees it: the real program is run
//! with its tasks in SQLite and in files, and its tables are looked at.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod counting;
mod kill;
mod shares;
mod shop;
mod slices;
