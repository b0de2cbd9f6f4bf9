//! Gristmill: put work on a queue now, have it done later, lose nothing.
//!
//! ```
//! use gristmill::{Mill, TaskType};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendEmail {
//!     to: String,
//! }
//!
//! impl TaskType for SendEmail {
//!     const QUEUE: &'static str = "emails";
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mill = Mill::open("memory:").await?; // or sqlite://gristmill.db
//! mill.declare::<SendEmail>().await?;
//! let answer = mill.put(SendEmail { to: "ada@example.org".into() }).await?;
//! assert!(answer.is_enqueued());
//! assert_eq!(mill.inspect().queue("emails").await?.ready, 1);
//! # Ok(())
//! # }
//! ```
//!
//! [`Mill`] opens a store by its URL, puts typed tasks (one by one, in bulk, or
//! inside your own SQLite or PostgreSQL transaction) and lets you inspect what stands. The
//! store itself, with every verb, is [`Mill::store`].

mod bulk;
pub mod contract;
pub mod copy;
mod declare;
mod doctor;
mod error;
mod inside;
mod inspect;
pub mod manager;
pub mod metrics;
mod mill;
mod outage;
mod pause;
mod put;
pub mod recovery;
pub mod schedule;
pub mod signal;
mod store_url;
mod task_type;
pub mod testing;
mod timer;
pub mod worker;

pub use bulk::{Bulk, BulkError, BulkProgress, BulkRefused, BulkReport};
pub use declare::Declare;
pub use error::Error;
pub use gristmill_core as core;
pub use gristmill_core::{
    Backoff, Encoding, OnDuplicate, Payload, PutAnswer, QueueName, QueueStats, Refusal, Settings,
    SettingsPatch, State, Store, StoreError, Task, TaskId, Timestamp, Unique,
};
pub use gristmill_files as files;
pub use gristmill_postgres as postgres;
pub use gristmill_postgres::PostgresUrl;
pub use gristmill_sqlite as sqlite;
pub use inspect::Inspect;
pub use mill::Mill;
pub use put::{Accepted, Put, RawTask};
pub use store_url::{StoreUrl, StoreUrlError};
pub use task_type::{TaskPayload, TaskType};
pub use worker::{Context, Worker};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
