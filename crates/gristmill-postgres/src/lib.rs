//! The PostgreSQL store of Gristmill.
//!
//! The verbs are SQL functions in a schema of their own (`sql/function/`), so
//! that any client of the database has the whole queue; this crate is one of
//! their users. A claim moves its tasks into one lease row instead of updating
//! each; counts are appended, never updated in place; callers of one store
//! that put at the same time share a commit; wake-ups are hints that travel
//! outside every commit.
//!
//! Every statement has a file of its own in `sql/`.

mod answer;
pub mod bare;
mod check;
mod checkpoint;
mod claim;
mod clamp;
mod clock;
mod codec;
mod connection;
mod deadline;
mod declare;
mod definition;
mod diagnose;
mod documents;
mod driver;
mod endings;
mod errors;
mod hint;
mod import;
mod inside;
mod line;
mod list;
mod listener;
mod migration;
mod notifier;
mod operate;
mod options;
mod pool;
mod pool_use;
mod postgres_url;
mod put;
mod read;
mod rights;
mod row;
mod schedules;
mod server;
mod session;
mod settle;
mod sql;
#[cfg(feature = "sqlx")]
pub mod sqlx;
mod ssl_mode;
mod stats;
mod store;
mod sweep;
#[cfg(feature = "tls")]
mod tls;
mod url;
mod wire;

pub use check::Finding;
pub use deadline::Timeouts;
pub use inside::WakeGuard;
pub use migration::{print as migrations, print_for as migrations_for, restore, versions};
pub use options::{Options, StatementMode};
pub use pool_use::PoolUse;
pub use postgres_url::PostgresUrl;
pub use rights::{make as make_roles, print as roles, print_for as roles_for};
pub use store::PostgresStore;
/// The driver, so that the caller's transaction is of the same version.
pub use tokio_postgres;
/// Likewise, for a transaction of sqlx.
#[cfg(feature = "sqlx")]
pub use {sqlx_core, sqlx_postgres};
