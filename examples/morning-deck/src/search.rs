//! The search index: enriched items are sent to a Meilisearch server.

use std::sync::Arc;

use gristmill::sqlite::rusqlite::{Connection, params};
use serde::Serialize;

use crate::deck::Deck;
use crate::error::Result;
use crate::http::Client;

const ITEM_UNINDEXED: &str = include_str!("sql/item_unindexed.sql");
const ITEM_INDEXED: &str = include_str!("sql/item_indexed.sql");

/// Most items sent at once.
const PAGE: i64 = 100;

/// Where the index is.
#[derive(Debug, Clone)]
pub struct Search {
    /// The server, without a path.
    pub url: String,
    /// What talks to it.
    pub client: Client,
    /// The key that it asks for, if it does.
    pub key: Option<String>,
}

/// An item as the index has it.
#[derive(Debug, Serialize)]
struct Document {
    id: i64,
    url: String,
    title: String,
    summary: String,
    tags: serde_json::Value,
    score: i64,
}

/// Sends enriched items that the index does not have. What an earlier attempt
/// could not send goes along; sending one twice changes nothing.
pub async fn index(deck: &Arc<Deck>) -> Result<()> {
    match &deck.services.search {
        Some(search) => search.send(deck).await,
        None => Ok(()),
    }
}

impl Search {
    /// Sends what is enriched and not in the index.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn send(&self, deck: &Arc<Deck>) -> Result<()> {
        let documents = deck.transact(|db, _| unindexed(db)).await?;
        if documents.is_empty() {
            return Ok(());
        }
        let url = format!("{}/indexes/news_items/documents", self.url.trim_end_matches('/'));
        let json = serde_json::to_string(&documents)?;
        self.client.post_json(&url, self.key.as_deref(), &json).await?;
        deck.transact(move |db, now| {
            let mut statement = db.prepare_cached(ITEM_INDEXED)?;
            for document in &documents {
                statement.execute(params![document.id, now.as_micros()])?;
            }
            Ok(())
        })
        .await
    }
}

fn unindexed(db: &Connection) -> Result<Vec<Document>> {
    let mut statement = db.prepare_cached(ITEM_UNINDEXED)?;
    let rows = statement.query_map(params![PAGE], |row| {
        let tags: Option<String> = row.get(4)?;
        Ok(Document {
            id: row.get(0)?,
            url: row.get(1)?,
            title: row.get(2)?,
            summary: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            tags: tags.and_then(|tags| serde_json::from_str(&tags).ok()).unwrap_or_default(),
            score: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
