//! The sync: a file's items, chunk by chunk. A chunk's items, prices and tasks
//! are committed together or not at all.

use std::fmt;
use std::io::Read;

use gristmill::Mill;
use gristmill::sqlite::rusqlite::Connection;

use crate::db;
use crate::error::Result;
use crate::feed::{FeedItem, read_chunks};
use crate::queue::{self, NewItem, PriceUpdated};

/// What a sync did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Report {
    pub(crate) chunks: usize,
    pub(crate) items: usize,
    pub(crate) new_items: usize,
    pub(crate) new_prices: usize,
    pub(crate) enqueued: usize,
    pub(crate) skipped: usize,
}

impl Report {
    fn add(&mut self, chunk: &Report) {
        self.chunks += chunk.chunks;
        self.items += chunk.items;
        self.new_items += chunk.new_items;
        self.new_prices += chunk.new_prices;
        self.enqueued += chunk.enqueued;
        self.skipped += chunk.skipped;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} items ({} new, {} new prices), {} tasks put, {} skipped",
            self.items, self.new_items, self.new_prices, self.enqueued, self.skipped
        )
    }
}

/// Syncs one file. At an error the chunks before it stand, and syncing the
/// file again completes it: what stands already changes nothing.
pub(crate) fn sync(
    mill: &Mill,
    db: &mut Connection,
    input: impl Read,
    size: usize,
) -> Result<Report> {
    let mut report = Report::default();
    let read = read_chunks(input, size, |chunk| {
        report.add(&take_in(mill, db, chunk)?);
        Ok(())
    });
    match read {
        Ok(()) => Ok(report),
        Err(error) => Err(format!(
            "{error}; {} items in {} chunks stand, sync the file again to complete it",
            report.items, report.chunks
        )
        .into()),
    }
}

/// Takes a chunk in, in one transaction.
fn take_in(mill: &Mill, db: &mut Connection, chunk: &[FeedItem]) -> Result<Report> {
    let transaction = db::begin(db)?;
    let (mut updated, mut new) = (Vec::new(), Vec::new());
    for item in chunk {
        let taken = db::take_in(&transaction, item)?;
        // An item that occurs twice may be put twice: the queue skips it.
        if taken.price_changed {
            updated.push(PriceUpdated { item: item.id });
        }
        if taken.is_new {
            new.push(NewItem { item: item.id });
        }
    }
    let (new_prices, new_items) = (updated.len(), new.len());
    let (updated, wake_updated) = queue::put(mill, &transaction, updated)?;
    let (new, wake_new) = queue::put(mill, &transaction, new)?;
    transaction.commit()?;
    wake_updated.committed();
    wake_new.committed();
    Ok(Report {
        chunks: 1,
        items: chunk.len(),
        new_items,
        new_prices,
        enqueued: updated.enqueued() + new.enqueued(),
        skipped: updated.duplicates() + new.duplicates(),
    })
}
