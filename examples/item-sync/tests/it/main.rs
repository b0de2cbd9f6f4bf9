//! What the application promises, as its user sees it: the real program is run
//! on a file of its own, and the queue is looked at from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod cron;
mod delete;
mod fail;
mod kill;
mod lost;
mod memory;
mod postgres;
mod review;
mod scale;
mod shop;
mod sync;
mod webhook;
mod work;
