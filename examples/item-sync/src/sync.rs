//! The sync: a file's items, chunk by chunk. A chunk's items, prices and tasks
//! are committed together or not at all.

use std::fmt;
use std::io::Read;

use gristmill::Mill;
use gristmill::port::PutReport;

use crate::db::Taken;
use crate::error::Result;
use crate::feed::{FeedItem, read_chunks};
use crate::items::Items;
use crate::queue::{NewItem, PriceUpdated};

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
    /// What a chunk that was taken in amounts to.
    pub(crate) fn of(
        chunk: &[FeedItem],
        (prices, items): (usize, usize),
        puts: &[PutReport],
    ) -> Self {
        Report {
            chunks: 1,
            items: chunk.len(),
            new_items: items,
            new_prices: prices,
            enqueued: puts.iter().map(PutReport::enqueued).sum(),
            skipped: puts.iter().map(PutReport::duplicates).sum(),
        }
    }

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
    items: &mut dyn Items,
    input: impl Read,
    size: usize,
) -> Result<Report> {
    let mut report = Report::default();
    let read = read_chunks(input, size, |chunk| {
        report.add(&items.take_in(mill, chunk)?);
        Ok(())
    });
    match read {
        Ok(()) => Ok(report),
        // Nothing of it stands: there is nothing to complete.
        Err(error) if report.chunks == 0 => Err(error),
        Err(error) => Err(format!(
            "{error:#}; {} items in {} chunks stand, sync the file again to complete it",
            report.items, report.chunks
        )
        .into()),
    }
}

/// The tasks that follow from the items of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Follows {
    pub(crate) updated: Vec<PriceUpdated>,
    pub(crate) new: Vec<NewItem>,
}

impl Follows {
    /// An item was taken in. One that occurs twice may be put twice: the queue
    /// skips it.
    pub(crate) fn add(&mut self, item: i64, taken: Taken) {
        if taken.price_changed {
            self.updated.push(PriceUpdated { item });
        }
        if taken.is_new {
            self.new.push(NewItem { item });
        }
    }

    /// New prices and new items.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.updated.len(), self.new.len())
    }
}
