//! News items: which are to be enriched, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill::Timestamp;
use gristmill::sqlite::rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::ai::{Article, Enrichment};
use crate::deck::Deck;
use crate::error::Result;
use crate::stage::Stage;
use crate::status::{Flow, ITEM};
use crate::{html, reader, search};

const ITEM_DUE: &str = include_str!("sql/item_due.sql");
const ITEM_SHOW: &str = include_str!("sql/item_show.sql");
const ITEM_ENRICHED: &str = include_str!("sql/item_enriched.sql");

/// An item with less text than this has its page fetched as well.
pub const ENOUGH_TEXT: usize = 2_000;

/// An item that failed so often waits for a person.
pub const MOST_FAILURES: u32 = 3;

/// How long an item that failed waits before it is found again, for each failure.
pub const RETRY_AFTER: Duration = Duration::from_secs(5 * 60);

/// An item as its enrichment needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its number.
    pub id: i64,
    /// Where its page is.
    pub url: String,
    /// What the service is asked about.
    pub article: Article,
}

/// Enriches a news item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EnrichItem {
    /// The item.
    pub row: i64,
}

/// An enrichment and the text it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enriched {
    content: String,
    enrichment: Enrichment,
}

#[async_trait]
impl Stage for EnrichItem {
    const FLOW: Flow = ITEM;
    type Begun = Item;
    type Found = Enriched;

    fn row(&self) -> i64 {
        self.row
    }

    /// New items that their readers can pay for, oldest first, and those that failed
    /// not too often.
    fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Self>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = db.prepare_cached(ITEM_DUE)?;
        let wait = i64::try_from(RETRY_AFTER.as_micros()).unwrap_or(i64::MAX);
        let values = params![limit, MOST_FAILURES, now.as_micros(), wait];
        let rows = statement.query_map(values, |row| Ok(EnrichItem { row: row.get(0)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// None also when the reader has no credit left: then the item is new again
    /// and waits for some.
    fn begin(&self, db: &Connection, now: Timestamp) -> Result<Option<Item>> {
        if !ITEM.begin(db, self.row, now)? {
            return Ok(None);
        }
        let mut statement = db.prepare_cached(ITEM_SHOW)?;
        let shown = statement.query_row(params![self.row], |row| {
            let (title, content, interests) = (row.get(2)?, row.get(3)?, row.get(4)?);
            let article = Article { title, content, interests };
            Ok((Item { id: row.get(0)?, url: row.get(1)?, article }, row.get::<_, i64>(5)?))
        });
        match shown.optional()? {
            Some((item, credits)) if credits > 0 => Ok(Some(item)),
            _ => {
                ITEM.put_back(db, self.row, now)?;
                Ok(None)
            }
        }
    }

    /// Asks for summary, tags and score.
    async fn work(&self, deck: &Arc<Deck>, item: &Item) -> Result<Enriched> {
        let mut article = item.article.clone();
        if article.content.chars().count() < ENOUGH_TEXT {
            match deck.services.web.get(&item.url).await {
                Ok(page) => {
                    let text = html::text(&page.body);
                    if text.len() > article.content.len() {
                        article.content = text;
                    }
                }
                // The page would have helped; without it there is less to go by.
                Err(error) => tracing::info!(item = item.id, %error, "enriched without its page"),
            }
        }
        let enrichment = deck.services.ai.enrich_with_score(&article).await?;
        Ok(Enriched { content: article.content, enrichment })
    }

    /// Takes the credit in the transaction that keeps what it paid for. Without
    /// a credit nothing is kept, and the item is new again.
    fn finish(&self, db: &Connection, item: &Item, found: &Enriched, now: Timestamp) -> Result<()> {
        if !reader::use_credit(db, item.id)? {
            ITEM.put_back(db, item.id, now)?;
            tracing::warn!(item = item.id, "its reader has no credit left");
            return Ok(());
        }
        let Enriched { content, enrichment } = found;
        let Enrichment { summary, tags, score, score_reasoning } = enrichment;
        let tags = serde_json::to_string(tags)?;
        let now_micros = now.as_micros();
        let values = params![item.id, content, summary, tags, score, score_reasoning, now_micros];
        db.prepare_cached(ITEM_ENRICHED)?.execute(values)?;
        ITEM.end(db, item.id, now)?;
        tracing::info!(item = item.id, score, title = item.article.title, "enriched");
        Ok(())
    }

    async fn follow(&self, deck: &Arc<Deck>) {
        if let Err(error) = search::index(deck).await {
            tracing::warn!(item = self.row, %error, "not in the index yet; the next one takes it along");
        }
    }
}
