//! The application's own tables, on its own connection to the queue's file.

use std::path::Path;
use std::time::Duration;

use gristmill::sqlite::rusqlite::{
    self, Connection, OptionalExtension, Transaction, TransactionBehavior, params,
};

use gristmill::Mill;

use crate::anomaly::Anomaly;
use crate::error::Result;
use crate::feed::FeedItem;
use crate::items::{Found, Items};
use crate::sync::{Follows, Report};
use crate::trend::Trend;

const SCHEMA: &str = include_str!("sql/schema.sql");
const ITEM_KNOWN: &str = include_str!("sql/item_known.sql");
const ITEM_UPSERT: &str = include_str!("sql/item_upsert.sql");
const ITEM_SHOW: &str = include_str!("sql/item_show.sql");
const ITEM_LIST: &str = include_str!("sql/item_list.sql");
const ITEM_DELETE: &str = include_str!("sql/item_delete.sql");
const PRICE_ADD: &str = include_str!("sql/price_add.sql");
const PRICE_WINDOW: &str = include_str!("sql/price_window.sql");
const TREND_SAVE: &str = include_str!("sql/trend_save.sql");
const ANOMALY_SAVE: &str = include_str!("sql/anomaly_save.sql");

/// As long as the queue itself waits for another's write.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the file, which the queue has made before, and makes the tables.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(PATIENCE)?;
    // Tasks put in our transactions are as durable as our commits.
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(SCHEMA)?;
    Ok(conn)
}

/// Begins a transaction that takes the write lock at once: one that reads
/// first and writes later is refused when another wrote in between.
pub(crate) fn begin(conn: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    conn.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// What taking an item in changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) is_new: bool,
    pub(crate) price_changed: bool,
}

/// Takes one item of a file in: the item itself, and its price if it changed.
pub(crate) fn take_in(db: &Connection, item: &FeedItem) -> rusqlite::Result<Taken> {
    let known: Option<Option<u32>> =
        db.prepare_cached(ITEM_KNOWN)?.query_row(params![item.id], |row| row.get(0)).optional()?;
    db.prepare_cached(ITEM_UPSERT)?.execute(params![item.id, item.name])?;
    let price_changed = known.flatten() != Some(item.price_cents);
    if price_changed {
        db.prepare_cached(PRICE_ADD)?.execute(params![item.id, item.price_cents])?;
    }
    Ok(Taken { is_new: known.is_none(), price_changed })
}

/// A price as it stands in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) id: i64,
    pub(crate) cents: i64,
}

/// An item's last prices, oldest first.
fn last_prices(db: &Connection, item: i64, most: u32) -> rusqlite::Result<Vec<Price>> {
    let mut statement = db.prepare_cached(PRICE_WINDOW)?;
    let rows = statement
        .query_map(params![item, most], |row| Ok(Price { id: row.get(0)?, cents: row.get(1)? }))?;
    let mut prices = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    prices.reverse();
    Ok(prices)
}

/// Remembers where an item's prices point.
fn save_trend(db: &Connection, item: i64, trend: &Trend) -> rusqlite::Result<()> {
    let values = params![item, trend.direction.as_str(), trend.slope_cents, trend.prices];
    db.prepare_cached(TREND_SAVE)?.execute(values)?;
    Ok(())
}

/// Remembers that a price is out of the ordinary.
fn save_anomaly(db: &Connection, item: i64, price: i64, anomaly: &Anomaly) -> rusqlite::Result<()> {
    let values = params![price, item, anomaly.mean_cents, anomaly.deviations];
    db.prepare_cached(ANOMALY_SAVE)?.execute(values)?;
    Ok(())
}

/// An item's name and its newest price in cents.
fn item(db: &Connection, item: i64) -> rusqlite::Result<Option<(String, i64)>> {
    db.prepare_cached(ITEM_SHOW)?
        .query_row(params![item], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Deletes an item with all that hangs on it. Returns whether there was one.
fn delete(db: &Connection, item: i64) -> Result<bool> {
    Ok(db.execute(ITEM_DELETE, params![item])? > 0)
}

/// An item as it is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) price_cents: Option<i64>,
    pub(crate) direction: Option<String>,
    pub(crate) anomalies: i64,
}

/// The first items.
fn list(db: &Connection, most: u32) -> rusqlite::Result<Vec<Shown>> {
    let mut statement = db.prepare_cached(ITEM_LIST)?;
    let rows = statement.query_map(params![most], |row| {
        Ok(Shown {
            id: row.get(0)?,
            name: row.get(1)?,
            price_cents: row.get(2)?,
            direction: row.get(3)?,
            anomalies: row.get(4)?,
        })
    })?;
    rows.collect()
}

impl Items for Connection {
    fn take_in(&mut self, mill: &Mill, chunk: &[FeedItem]) -> Result<Report> {
        let transaction = begin(self)?;
        let mut follows = Follows::default();
        for item in chunk {
            follows.add(item.id, take_in(&transaction, item)?);
        }
        let counts = follows.counts();
        // An item without its task would never be looked at again: rather no item.
        let updated = mill.put_all(follows.updated).within(&transaction).now()?;
        let new = mill.put_all(follows.new).within(&transaction).now()?;
        transaction.commit()?;
        Ok(Report::of(chunk, counts, &[updated.committed(), new.committed()]))
    }

    fn study(
        &mut self,
        item: i64,
        most: u32,
        look: &dyn Fn(&[Price]) -> Option<Found>,
    ) -> Result<()> {
        let transaction = begin(self)?;
        match look(&last_prices(&transaction, item, most)?) {
            None => {}
            Some(Found::Trend(trend)) => save_trend(&transaction, item, &trend)?,
            Some(Found::Anomaly(price, found)) => save_anomaly(&transaction, item, price, &found)?,
        }
        Ok(transaction.commit()?)
    }

    fn item(&mut self, item: i64) -> Result<Option<(String, i64)>> {
        Ok(self::item(self, item)?)
    }

    fn delete(&mut self, item: i64) -> Result<bool> {
        delete(self, item)
    }

    fn list(&mut self, most: u32) -> Result<Vec<Shown>> {
        Ok(list(self, most)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(id: i64, price_cents: u32) -> FeedItem {
        FeedItem { id, name: format!("item {id}"), price_cents }
    }

    fn memory() -> Connection {
        open(Path::new(":memory:")).expect("a database")
    }

    #[test]
    fn only_a_changed_price_adds_a_row() {
        let db = memory();
        let mut answers = Vec::new();
        for price in [100, 100, 120, 100, 130] {
            let taken = take_in(&db, &feed(1, price)).expect("taken in");
            answers.push((taken.is_new, taken.price_changed));
        }
        assert_eq!(
            answers,
            [(true, true), (false, false), (false, true), (false, true), (false, true)]
        );
        let prices = last_prices(&db, 1, 2).expect("prices");
        assert_eq!(prices.iter().map(|p| p.cents).collect::<Vec<_>>(), [100, 130]);
    }

    #[test]
    fn a_deleted_item_takes_everything_along() {
        let db = memory();
        take_in(&db, &feed(1, 100)).expect("taken in");
        let price = last_prices(&db, 1, 1).expect("prices")[0].id;
        let anomaly = Anomaly { mean_cents: 1.0, deviations: 9.0 };
        for _ in 0..2 {
            save_anomaly(&db, 1, price, &anomaly).expect("saved");
        }
        let found = crate::trend::trend(&[1, 2]).expect("a trend");
        save_trend(&db, 1, &found).expect("saved");
        let shown = list(&db, 9).expect("a list").remove(0);
        assert_eq!((shown.anomalies, shown.direction.as_deref()), (1, Some("rising")));
        assert!(delete(&db, 1).expect("deleted") && !delete(&db, 1).expect("asked again"));
        let left = "SELECT (SELECT count(*) FROM item_price) + (SELECT count(*) FROM item_trend)
                         + (SELECT count(*) FROM item_anomaly)";
        assert_eq!(db.query_row(left, [], |row| row.get::<_, i64>(0)), Ok(0));
    }
}
