//! Rows that got stuck: how recovery sees and resets them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill::recovery::{RowsError, StuckRows};

use crate::deck::Deck;
use crate::error::Result;
use crate::status::{BRIEFING, Flow, ITEM, SOURCE};

/// Rows in one step.
const PAGE: usize = 500;

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

/// At the start of a process whose queues live in memory: nobody can be at any row that
/// says so, for the queues went with the process before.
///
/// # Errors
/// When the database does not answer.
pub async fn reset_all(deck: &Arc<Deck>) -> Result<usize> {
    let reset = deck.transact(|db, now| {
        let mut count = 0;
        for flow in [SOURCE, ITEM, BRIEFING] {
            loop {
                let rows = flow.stuck(db, (now, Duration::ZERO), 0, PAGE)?;
                count += flow.reset(db, (now, Duration::ZERO), &rows)?;
                if rows.len() < PAGE {
                    break;
                }
            }
        }
        Ok(count)
    });
    let count = reset.await?;
    if count > 0 {
        tracing::info!(rows = count, "begin anew: the process before was at them");
    }
    Ok(count)
}
