//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Clock, Limits};

use crate::{PostgresUrl, Timeouts};

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatementMode {
    /// Prepared once a connection: the fastest.
    #[default]
    Prepared,
    /// Without names and without anything that outlives a transaction: for a
    /// transaction pooler between this program and the server.
    Unnamed,
}

/// What can be said when a store is opened. The defaults suit everyone; a URL
/// can say some of them too (`?schema=`, `?statement_mode=unnamed`,
/// `?listen_url=`, `?connections=`, `?timeout=` and its like).
#[derive(Debug, Clone)]
pub struct Options {
    /// Where time comes from, in tests. Without one it is the server's clock:
    /// the only one that all processes share.
    pub clock: Option<Arc<dyn Clock>>,
    /// The store's limits.
    pub limits: Limits,
    /// The schema that holds the store.
    pub schema: String,
    /// How statements are sent.
    pub statement_mode: StatementMode,
    /// Where to listen for wake-ups, when the main URL leads to a transaction
    /// pooler. Without one such a store polls.
    pub listen_url: Option<PostgresUrl>,
    /// Most connections at a time, the listening one not counted.
    pub connections: usize,
    /// How long a connection to one host may take to be made, all of it.
    pub connect_timeout: Duration,
    /// How long calls may take.
    pub timeouts: Timeouts,
    /// Whether the schema is made and brought up to date. Without it, a
    /// missing or older one is an error.
    pub migrate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: None,
            limits: Limits::default(),
            schema: "gristmill".to_owned(),
            statement_mode: StatementMode::Prepared,
            listen_url: None,
            connections: 8,
            connect_timeout: Duration::from_secs(5),
            timeouts: Timeouts::default(),
            migrate: true,
        }
    }
}
