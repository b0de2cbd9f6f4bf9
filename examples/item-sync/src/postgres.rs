//! The application's own tables in PostgreSQL, in the queue's database.

use std::future::Future;

use gristmill::Mill;
use gristmill::postgres::tokio_postgres::{self, Client, NoTls, Transaction};
use tokio::runtime::Handle;

use crate::db::{Price, Shown, Taken};
use crate::error::Result;
use crate::feed::FeedItem;
use crate::items::{Found, Items};
use crate::sync::{Follows, Report};

const SCHEMA: &str = include_str!("sql/postgres/schema.sql");
const ITEM_KNOWN: &str = include_str!("sql/postgres/item_known.sql");
const ITEM_UPSERT: &str = include_str!("sql/postgres/item_upsert.sql");
const ITEM_SHOW: &str = include_str!("sql/postgres/item_show.sql");
const ITEM_LIST: &str = include_str!("sql/postgres/item_list.sql");
const ITEM_DELETE: &str = include_str!("sql/postgres/item_delete.sql");
const PRICE_ADD: &str = include_str!("sql/postgres/price_add.sql");
const PRICE_WINDOW: &str = include_str!("sql/postgres/price_window.sql");
const TREND_SAVE: &str = include_str!("sql/postgres/trend_save.sql");
const ANOMALY_SAVE: &str = include_str!("sql/postgres/anomaly_save.sql");

/// A connection of the application's own.
pub(crate) struct Postgres {
    client: Client,
    runtime: Handle,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Postgres")
    }
}

impl Postgres {
    /// Connects, and makes the tables. What the URL says of the queue (behind
    /// `?`) is not for this connection.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let plain = url.split('?').next().unwrap_or(url);
        let (client, connection) = tokio_postgres::connect(plain, NoTls).await?;
        // Its end is heard of by whoever uses the client next.
        tokio::spawn(connection);
        client.batch_execute(SCHEMA).await?;
        Ok(Postgres { client, runtime: Handle::current() })
    }
}

/// Waits where it may block: on a thread of its own, or one that steps aside.
fn wait<T>(runtime: &Handle, work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| runtime.block_on(work))
}

/// Takes one item of a file in: the item itself, and its price if it changed.
async fn take_in(db: &Transaction<'_>, item: &FeedItem) -> Result<Taken> {
    let known = db.query_opt(ITEM_KNOWN, &[&item.id]).await?;
    let price: Option<i64> = known.as_ref().and_then(|row| row.get(0));
    db.execute(ITEM_UPSERT, &[&item.id, &item.name]).await?;
    let cents = i64::from(item.price_cents);
    let price_changed = price != Some(cents);
    if price_changed {
        db.execute(PRICE_ADD, &[&item.id, &cents]).await?;
    }
    Ok(Taken { is_new: known.is_none(), price_changed })
}

impl Items for Postgres {
    fn take_in(&mut self, mill: &Mill, chunk: &[FeedItem]) -> Result<Report> {
        let Postgres { client, runtime } = self;
        wait(runtime, async {
            let transaction = client.transaction().await?;
            let mut follows = Follows::default();
            for item in chunk {
                follows.add(item.id, take_in(&transaction, item).await?);
            }
            let counts = follows.counts();
            let updated = mill.put_all(follows.updated).within(&transaction).await?;
            let new = mill.put_all(follows.new).within(&transaction).await?;
            transaction.commit().await?;
            Ok(Report::of(chunk, counts, &[updated.committed(), new.committed()]))
        })
    }

    fn study(
        &mut self,
        item: i64,
        most: u32,
        look: &dyn Fn(&[Price]) -> Option<Found>,
    ) -> Result<()> {
        let Postgres { client, runtime } = self;
        wait(runtime, async {
            let transaction = client.transaction().await?;
            let rows = transaction.query(PRICE_WINDOW, &[&item, &i64::from(most)]).await?;
            let mut prices: Vec<Price> =
                rows.iter().map(|row| Price { id: row.get(0), cents: row.get(1) }).collect();
            prices.reverse();
            match look(&prices) {
                None => {}
                Some(Found::Trend(trend)) => {
                    let (direction, prices) = (trend.direction.as_str(), i64::from(trend.prices));
                    let slope = trend.slope_cents;
                    transaction.execute(TREND_SAVE, &[&item, &direction, &slope, &prices]).await?;
                }
                Some(Found::Anomaly(price, found)) => {
                    let (mean, deviations) = (found.mean_cents, found.deviations);
                    transaction.execute(ANOMALY_SAVE, &[&price, &item, &mean, &deviations]).await?;
                }
            }
            Ok(transaction.commit().await?)
        })
    }

    fn item(&mut self, item: i64) -> Result<Option<(String, i64)>> {
        let row = wait(&self.runtime, self.client.query_opt(ITEM_SHOW, &[&item]))?;
        Ok(row.map(|row| (row.get(0), row.get(1))))
    }

    fn delete(&mut self, item: i64) -> Result<bool> {
        Ok(wait(&self.runtime, self.client.execute(ITEM_DELETE, &[&item]))? > 0)
    }

    fn list(&mut self, most: u32) -> Result<Vec<Shown>> {
        let rows = wait(&self.runtime, self.client.query(ITEM_LIST, &[&i64::from(most)]))?;
        let shown = rows.iter().map(|row| Shown {
            id: row.get(0),
            name: row.get(1),
            price_cents: row.get(2),
            direction: row.get(3),
            anomalies: row.get(4),
        });
        Ok(shown.collect())
    }
}
