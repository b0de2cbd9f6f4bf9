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
//!
//! # What stays, and what grows
//!
//! What grows is `#[non_exhaustive]`: reports, numbers, settings in force, and errors.
//! Read their fields, and give a `match` on an error a last arm. A later version adds to
//! them without breaking your program:
//!
//! ```compile_fail,E0639
//! # let queue = gristmill::QueueName::new("emails").unwrap();
//! let mut made = gristmill::QueueStats::new(queue, 1);
//! made = gristmill::QueueStats { ready: 1, ..made };
//! ```
//!
//! What you make by its fields ([`SettingsPatch`], [`Backoff`], the stores' `Options`)
//! grows as well: end with `..Default::default()`, or say it with [`Declare`].
//!
//! What decides how you go on is an `enum` that you may match to the last word:
//! [`TaskState`], [`Outcome`], [`PutAnswer`], [`Encoding`], [`Unique`], [`OnDuplicate`], [`Per`].
//! One more word there would be a decision of yours, so it takes a breaking version.
//!
//! [`port`] is what stores implement, for our own crates and for tests: it is ours to
//! change in every version.

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
mod error_shape;
mod inside;
mod inspect;
mod keep;
pub mod manager;
pub mod metrics;
mod mill;
mod open;
mod orders;
mod outage;
mod pause;
pub mod prelude;
mod put;
pub mod recovery;
mod result;
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
pub use error_shape::error_shape;
/// The model and the port that stores implement. Ours to change in every version, beside
/// what is also named at the top of this crate: no store but ours is meant to implement
/// [`Store`].
#[doc(no_inline)]
pub use gristmill_core as port;
pub use gristmill_core::{
    Backoff, Encoding, Headers, OnDuplicate, Payload, Per, Progress, PutAnswer, QueueName,
    QueueStats, Refusal, Settings, SettingsPatch, State as TaskState, Store, StoreError, Task,
    TaskId, Timestamp, Unique, Why,
};
#[cfg(feature = "files")]
pub use gristmill_files as files;
#[cfg(feature = "postgres")]
pub use gristmill_postgres as postgres;
#[cfg(feature = "postgres")]
pub use gristmill_postgres::PostgresUrl;
#[cfg(feature = "sqlite")]
pub use gristmill_sqlite as sqlite;
/// What our own parts agree on through a store: who leads, who works, and the manager's
/// word. Ours to change as [`port`] is.
pub use gristmill_text::ControlPlane;
pub use inside::{Asking, Transaction, Uncommitted, Within};
pub use inspect::Inspect;
pub use mill::Mill;
pub use put::{IntoPut, Put, Unbound};
pub use result::{TaskResult, Wait};
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
    #[doc = include_str!("../../../docs/remote.md")]
    struct Remote;
    #[doc = include_str!("../../../docs/schedules.md")]
    struct Schedules;
    #[doc = include_str!("../../../docs/flow.md")]
    struct Flow;
    #[doc = include_str!("../../../docs/state-and-layers.md")]
    struct StateAndLayers;
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/transactions.md")]
    struct Transactions;
    #[doc = include_str!("../../../docs/workers.md")]
    struct Workers;
}
