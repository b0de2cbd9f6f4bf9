//! The service as a client sees it: requests over real sockets to a server over a real
//! store.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests assert by panicking, in helpers too"
)]

mod access;
mod attacked;
mod audit;
mod claiming;
mod client;
mod dashboard;
mod documented;
mod looking;
mod matrix;
mod operating;
mod port;
mod putting;
mod repeating;
mod settling;
mod slow;
mod stopping;
mod strangers;
mod streaming;
mod tls;
