//! The deck: the application's rows, its clock, and the services around it.
//! It knows nothing of queues.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill::Timestamp;
use gristmill::port::Clock;
use gristmill::sqlite::rusqlite::{Connection, Transaction};

use crate::ai::AiService;
use crate::db;
use crate::error::Result;
use crate::http::Client;
use crate::search::Search;
use crate::smtp::Mailer;
use crate::status::Flow;

/// What the deck needs from outside.
pub struct Services {
    /// Fetches feeds and pages.
    pub web: Client,
    /// Enriches news items.
    pub ai: Arc<dyn AiService>,
    /// Sends reports, if mail is enabled.
    pub mailer: Option<Mailer>,
    /// Finds news items again, if search is enabled.
    pub search: Option<Search>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").field("mailer", &self.mailer).finish_non_exhaustive()
    }
}

/// The application without its queues.
#[derive(Debug)]
pub struct Deck {
    db: Mutex<Connection>,
    clock: Arc<dyn Clock>,
    /// What it needs from outside.
    pub services: Services,
}

impl Deck {
    /// A deck over an opened database.
    pub fn new(db: Connection, clock: Arc<dyn Clock>, services: Services) -> Arc<Self> {
        Arc::new(Deck { db: Mutex::new(db), clock, services })
    }

    /// Where its time comes from.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Runs one transaction where waiting for the disk blocks nobody else, and
    /// commits it unless it fails. The time is read once the transaction has
    /// the database to itself: what commits later is not earlier.
    pub async fn transact<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Transaction<'_>, Timestamp) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let deck = self.clone();
        tokio::task::spawn_blocking(move || deck.transact_here(work)).await?
    }

    fn transact_here<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>, Timestamp) -> Result<T>,
    ) -> Result<T> {
        // A transaction that a panic cut off was rolled back as it was dropped.
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = db::begin(&mut db)?;
        let answer = work(&transaction, self.clock.now())?;
        transaction.commit()?;
        Ok(answer)
    }

    /// A row's work has failed for good, in whatever way: it panicked, took too
    /// long, or ended in an error that was told already.
    pub fn give_up(&self, flow: Flow, row: Option<&str>, why: &str) {
        let Some(row) = row.and_then(|row| row.parse().ok()) else { return };
        let marked = self.transact_here(|db, now| Ok(flow.fail(db, row, why, now)?));
        if let Err(error) = marked {
            // It stays between two ends, where recovery finds it.
            tracing::error!(table = flow.table, row, %error, "could not be marked as failed");
        }
    }
}
