//! The SQLite store of Gristmill: one file, nothing to install.
//!
//! One thread writes and commits for everyone who asked meanwhile (group
//! commit); two threads read. Several processes may open the same file, which
//! may be the application's own: then a put can join the application's
//! transaction ([`SqliteStore::put_in`]), and a queue can be bound to one of
//! its tables.
//!
//! How tasks lie in the file is told in `sql/migration/`; every statement has a
//! file of its own in `sql/`.

mod ask;
mod attempt;
mod backup;
pub mod bare;
mod batch;
mod buckets;
mod check;
mod checkpoint;
mod checksum;
mod claim;
mod codec;
mod db;
mod declare;
mod delta;
mod diagnose;
mod documents;
mod endings;
mod errors;
mod fair;
mod groups;
mod import;
mod inside;
mod known;
mod lease;
mod list;
mod lock;
mod migration;
mod moves;
mod open;
mod operate;
mod options;
mod pick;
mod place;
#[cfg(test)]
mod plans;
mod put;
mod read;
mod reader;
mod reserve;
mod row;
mod schedules;
mod settle;
mod slots;
mod sql;
mod statistics;
mod stats;
mod store;
mod subject;
mod sweep;
mod verbs;
mod window;
mod write;
mod writer;

pub use check::Finding;
pub use inside::WakeGuard;
pub use options::Options;
/// The driver, so that the caller's connection is of the same version.
pub use rusqlite;
pub use store::SqliteStore;
