//! Items and what is kept of them, wherever they are kept: in SQLite
//! (`db.rs`) or in PostgreSQL (`postgres.rs`), beside the queue.

use gristmill::{Mill, StoreUrl};

use crate::anomaly::Anomaly;
use crate::db::{self, Price, Shown};
use crate::error::Result;
use crate::feed::FeedItem;
use crate::postgres::Postgres;
use crate::sync::Report;
use crate::trend::Trend;

/// The application's tables. Every method is one transaction, and blocks.
pub(crate) trait Items: Send + std::fmt::Debug {
    /// Takes a chunk of a file in, and puts the tasks that follow from it.
    fn take_in(&mut self, mill: &Mill, chunk: &[FeedItem]) -> Result<Report>;

    /// Looks at an item's last prices, oldest first, and keeps what is found.
    fn study(
        &mut self,
        item: i64,
        most: u32,
        look: &dyn Fn(&[Price]) -> Option<Found>,
    ) -> Result<()>;

    /// An item's name and its newest price in cents.
    fn item(&mut self, item: i64) -> Result<Option<(String, i64)>>;

    /// Deletes an item with all that hangs on it. Returns whether there was one.
    fn delete(&mut self, item: i64) -> Result<bool>;

    /// The first items.
    fn list(&mut self, most: u32) -> Result<Vec<Shown>>;
}

/// What was found out about an item.
#[derive(Debug)]
pub(crate) enum Found {
    /// Where its prices point.
    Trend(Trend),
    /// The price of this id is out of the ordinary.
    Anomaly(i64, Anomaly),
}

const UNFIT: &str = "items are kept in a SQLite file or in PostgreSQL";

/// The store that a path or a PostgreSQL URL means.
pub(crate) fn store_url(place: &str) -> Result<StoreUrl> {
    let url: StoreUrl =
        if place.contains("://") { place.parse()? } else { format!("sqlite://{place}").parse()? };
    // Before anything is made there.
    let fits = matches!(url, StoreUrl::Sqlite(_) | StoreUrl::Postgres(_));
    if fits { Ok(url) } else { Err(UNFIT.into()) }
}

/// Opens the application's tables where the queue is. The queue comes first: it
/// sets the file up.
pub(crate) async fn open(place: &str) -> Result<Box<dyn Items>> {
    Ok(match store_url(place)? {
        StoreUrl::Sqlite(path) => Box::new(db::open(&path)?),
        StoreUrl::Postgres(url) => Box::new(Postgres::open(url.reveal()).await?),
        _ => return Err(UNFIT.into()),
    })
}
