//! Sources: which are due, and what a fetch brings in.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill::Timestamp;
use gristmill::sqlite::rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::deck::Deck;
use crate::error::Result;
use crate::fetch::{self, Entry, Kind};
use crate::stage::Stage;
use crate::status::{Flow, ITEM, SOURCE};

const SOURCE_ADD: &str = include_str!("sql/source_add.sql");
const SOURCE_DUE: &str = include_str!("sql/source_due.sql");
const SOURCE_SHOW: &str = include_str!("sql/source_show.sql");
const SOURCE_FETCHED: &str = include_str!("sql/source_fetched.sql");
const ITEM_ADD: &str = include_str!("sql/item_add.sql");

/// A source as a fetch needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its number.
    pub id: i64,
    /// How it is read.
    pub kind: Kind,
    /// Where it is.
    pub url: String,
    /// Nothing was taken in from it yet.
    pub is_first_import: bool,
}

/// Adds a source of a reader.
///
/// # Errors
/// When the reader has it already, or the interval is zero.
pub fn add(
    db: &Connection,
    reader: i64,
    (kind, url): (Kind, &str),
    refresh_minutes: u32,
    now: Timestamp,
) -> Result<i64> {
    let values = params![reader, kind.as_str(), url, refresh_minutes, now.as_micros()];
    Ok(db.prepare_cached(SOURCE_ADD)?.query_row(values, |row| row.get(0))?)
}

/// Fetches a source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FetchSource {
    /// The source.
    pub row: i64,
}

#[async_trait]
impl Stage for FetchSource {
    const FLOW: Flow = SOURCE;
    type Begun = Source;
    type Found = Vec<Entry>;

    fn row(&self) -> i64 {
        self.row
    }

    /// Sources whose interval has passed and whose reader has credit, those
    /// that waited longest first.
    fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Self>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = db.prepare_cached(SOURCE_DUE)?;
        let due = |row: &Row<'_>| Ok(FetchSource { row: row.get(0)? });
        let rows = statement.query_map(params![now.as_micros(), limit], due)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn begin(&self, db: &Connection, now: Timestamp) -> Result<Option<Source>> {
        if !SOURCE.begin(db, self.row, now)? {
            return Ok(None);
        }
        let mut statement = db.prepare_cached(SOURCE_SHOW)?;
        let shown = statement.query_row(params![self.row], |row| {
            Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?))
        });
        let Some((id, kind, url, is_first_import)) = shown.optional()? else { return Ok(None) };
        Ok(Some(Source { id, kind: kind.parse()?, url, is_first_import }))
    }

    async fn work(&self, deck: &Arc<Deck>, source: &Source) -> Result<Vec<Entry>> {
        fetch::fetch(&deck.services, source).await
    }

    /// Takes in what is new; what is known already changes nothing. A first
    /// import is not enriched: whoever adds a source does not pay for its past.
    fn finish(
        &self,
        db: &Connection,
        source: &Source,
        entries: &Vec<Entry>,
        now: Timestamp,
    ) -> Result<()> {
        let status = if source.is_first_import { ITEM.ended } else { ITEM.first };
        let mut statement = db.prepare_cached(ITEM_ADD)?;
        let mut new = 0;
        for entry in entries {
            let Entry { guid, url, title, content } = entry;
            let values = params![source.id, guid, url, title, content, status, now.as_micros()];
            new += statement.execute(values)?;
        }
        db.prepare_cached(SOURCE_FETCHED)?.execute(params![source.id, now.as_micros()])?;
        SOURCE.end(db, source.id, now)?;
        tracing::info!(source = source.id, kind = source.kind.as_str(), new, status, "fetched");
        Ok(())
    }
}
