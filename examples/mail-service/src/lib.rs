//! Mail service: mails, newsletters and what could not be delivered, on queues
//! that a contract describes. See README.md.
//!
//! The queue part is `handlers.rs` and `service.rs`; `outbox.rs` is where mails
//! go.

pub mod handlers;
pub mod outbox;
pub mod scrape;
pub mod service;
pub mod tend;

gristmill::include_contract!(
    /// What `queues.yaml` says, in Rust.
    #[warn(clippy::pedantic)]
    pub mod queues
);

/// What the page on contracts shows compiles here, where there is generated code.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/contract.md")]
struct ContractPage;
