//! A throw-away PostgreSQL for tests.
//!
//! [`Server::shared`] answers with one server for the whole test run, however
//! many processes ask: the first starts it, the others find it. It ends by
//! itself when nobody has used it for a minute, also when the tests were
//! killed. Each test takes a [`Database`] of its own, copied from a template
//! that is prepared once. [`Server::private`] is for tests that stop, restart,
//! freeze or kill their server, and [`Server::primary`] for those that need
//! standbys. A [`Proxy`] falls silent where a network would.
//!
//! The servers are the system's own (`/usr/lib/postgresql/*/bin`), newest
//! first, on data directories of our own: a cluster that a distribution starts
//! is never touched. `GRISTMILL_PG_BIN` names the folder of another version's.
//! They run as an unprivileged user when the tests run as root, listen on a
//! private socket, and on 127.0.0.1 behind a password. `fsync` is on: what tests
//! measure and cut is what users get.
//!
//! The interface blocks, because setting up a test is no place for cleverness.
//!
//! ```no_run
//! let server = gristmill_pgserver::Server::shared()?;
//! let database = server.database("shop", |url| {
//!     // Run the migrations on `url` here, once for all tests of this program.
//!     # let _ = url;
//!     Ok(())
//! })?;
//! println!("{}", database.url());
//! # Ok::<(), gristmill_pgserver::Error>(())
//! ```

mod account;
mod binaries;
mod bouncer;
mod cluster;
mod database;
mod error;
mod place;
mod private;
mod proxy;
mod seed;
mod server;
mod watchdog;

pub use crate::database::Database;
pub use crate::error::Error;
pub use crate::private::PrivateServer;
pub use crate::proxy::Proxy;
pub use crate::server::Server;

/// What every function here answers.
pub type Result<T> = std::result::Result<T, Error>;
