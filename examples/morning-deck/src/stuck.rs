//! Rows that got stuck: how recovery sees and resets them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill::recovery::{RowsError, StuckRows};

use crate::deck::Deck;
use crate::status::Flow;

/// The rows of one table.
#[derive(Debug)]
pub struct Rows {
    /// Where they are.
    pub deck: Arc<Deck>,
    /// Their statuses.
    pub flow: Flow,
}

#[async_trait]
impl StuckRows for Rows {
    async fn stuck(
        &self,
        older_than: Duration,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, RowsError> {
        let flow = self.flow;
        let after: i64 = after.map(str::parse).transpose()?.unwrap_or(0);
        let list = self
            .deck
            .transact(move |db, now| Ok(flow.stuck(db, (now, older_than), after, limit)?));
        list.await
    }

    async fn reset(&self, keys: &[String], older_than: Duration) -> Result<u64, RowsError> {
        let (flow, keys) = (self.flow, keys.to_vec());
        let reset =
            self.deck.transact(move |db, now| Ok(flow.reset(db, (now, older_than), &keys)? as u64));
        reset.await
    }
}
