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

mod accepted;
mod bulk;
mod bulk_input;
#[cfg(feature = "contract")]
pub mod contract;
pub mod copy;
mod declare;
mod doctor;
mod draft;
mod error;
mod inside;
mod inspect;
pub mod manager;
pub mod metrics;
mod mill;
mod open;
mod outage;
mod pause;
pub mod prelude;
mod put;
pub mod recovery;
pub mod schedule;
pub mod signal;
mod store_url;
mod task_type;
pub mod testing;
mod timer;
pub mod worker;

pub use accepted::Accepted;
pub use bulk::{Bulk, BulkError, BulkProgress, BulkRefused, BulkReport};
pub use declare::Declare;
pub use error::Error;
#[doc(no_inline)]
pub use gristmill_core as port;
pub use gristmill_core::{
    Backoff, Encoding, Headers, NewTask, OnDuplicate, Payload, PutAnswer, QueueName, QueueStats,
    Refusal, Settings, SettingsPatch, State as TaskState, Store, StoreError, Task, TaskId,
    Timestamp, Unique, Why,
};
#[cfg(feature = "files")]
pub use gristmill_files as files;
#[cfg(feature = "postgres")]
pub use gristmill_postgres as postgres;
#[cfg(feature = "postgres")]
pub use gristmill_postgres::PostgresUrl;
#[cfg(feature = "sqlite")]
pub use gristmill_sqlite as sqlite;
pub use inside::{Asking, Transaction, Uncommitted, Within};
pub use inspect::Inspect;
pub use mill::Mill;
pub use put::{IntoPut, Put, Unbound};
pub use store_url::{StoreUrl, StoreUrlError};
pub use task_type::{TaskPayload, TaskType};
pub use worker::{Context, Outcome, State, Worker};

/// Every program in the documents compiles, and runs where it can.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/kinds.md")]
    struct Kinds;
    #[doc = include_str!("../../../docs/metrics.md")]
    struct Metrics;
    #[doc = include_str!("../../../docs/postgres.md")]
    struct Postgres;
    #[doc = include_str!("../../../docs/schedules.md")]
    struct Schedules;
    #[doc = include_str!("../../../docs/state-and-layers.md")]
    struct StateAndLayers;
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/transactions.md")]
    struct Transactions;
    #[doc = include_str!("../../../docs/workers.md")]
    struct Workers;
}
