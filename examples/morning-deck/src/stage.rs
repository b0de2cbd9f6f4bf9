//! A stage of the deck: a kind of row, when one is due, and what is done about
//! it. The three stages know nothing of queues; the queue part knows nothing of
//! sources, items and briefings.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill::Timestamp;
use gristmill::sqlite::rusqlite::Connection;

use crate::deck::Deck;
use crate::error::Result;
use crate::status::Flow;

/// Work on one row.
#[async_trait]
pub trait Stage: Clone + Send + Sync + 'static {
    /// The statuses of its row.
    const FLOW: Flow;
    /// What the work needs to know of the row.
    type Begun: Send + Sync + 'static;
    /// What the work finds out.
    type Found: Send + Sync + 'static;

    /// The row's number.
    fn row(&self) -> i64;

    /// What is due now.
    fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Self>>;

    /// Marks the row as being worked on. None when nothing is left to do.
    fn begin(&self, db: &Connection, now: Timestamp) -> Result<Option<Self::Begun>>;

    /// Does the work. It holds no transaction: it may take long.
    async fn work(&self, deck: &Arc<Deck>, begun: &Self::Begun) -> Result<Self::Found>;

    /// Keeps what was found and gives the row its final status.
    fn finish(
        &self,
        db: &Connection,
        begun: &Self::Begun,
        found: &Self::Found,
        now: Timestamp,
    ) -> Result<()>;

    /// What follows once that is committed. Nothing depends on it.
    async fn follow(&self, _deck: &Arc<Deck>) {}
}
