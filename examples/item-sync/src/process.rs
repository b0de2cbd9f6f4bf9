//! What is done about an item: the processes behind the queues, which know
//! nothing of queues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill::TaskId;

use crate::anomaly::{self, anomaly};
use crate::error::Result;
use crate::items::{Found, Items};
use crate::notice::{Notice, Receiver};
use crate::trend::{self, trend};

/// The processes and what they work with.
#[derive(Debug)]
pub(crate) struct Processes {
    items: Mutex<Box<dyn Items>>,
    receiver: Receiver,
}

impl Processes {
    pub(crate) fn new(items: Box<dyn Items>, receiver: Receiver) -> Self {
        Processes { items: Mutex::new(items), receiver }
    }

    /// Runs one of them where waiting for the database or the network blocks
    /// nobody else.
    pub(crate) async fn run(
        self: Arc<Self>,
        process: impl FnOnce(&Self) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        tokio::task::spawn_blocking(move || process(&self)).await?
    }

    fn items(&self) -> MutexGuard<'_, Box<dyn Items>> {
        // A transaction that a panic cut off was rolled back as it was dropped.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes an item's trend anew.
    pub(crate) fn price_trend(&self, item: i64) -> Result<()> {
        self.items().study(item, trend::WINDOW, &|prices| {
            let cents: Vec<i64> = prices.iter().map(|price| price.cents).collect();
            trend(&cents).map(Found::Trend)
        })
    }

    /// Compares an item's newest price with those before it.
    pub(crate) fn price_anomaly(&self, item: i64) -> Result<()> {
        self.items().study(item, anomaly::WINDOW + 1, &|prices| {
            let (newest, earlier) = prices.split_last()?;
            let earlier: Vec<i64> = earlier.iter().map(|price| price.cents).collect();
            let found = anomaly(&earlier, newest.cents)?;
            Some(Found::Anomaly(newest.id, found))
        })
    }

    /// Tells of a new item. The task's number goes along: should the notice be
    /// sent twice because the process died in between, its receiver can tell.
    pub(crate) fn new_item(&self, item: i64, task: TaskId) -> Result<()> {
        // The database is free again before the notice is on its way.
        let known = self.items().item(item)?;
        match known {
            Some((name, price_cents)) => {
                self.receiver.tell(&Notice { task: task.0, item, name, price_cents })
            }
            // Deleted since: there is nothing to tell any more.
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db;
    use crate::feed::FeedItem;

    fn processes(prices: &[u32]) -> Processes {
        let db = db::open(":memory:".as_ref()).expect("a database");
        for price in prices {
            let item = FeedItem { id: 7, name: "Lamp".to_owned(), price_cents: *price };
            db::take_in(&db, &item).expect("taken in");
        }
        let folder = tempfile::tempdir().expect("a folder");
        Processes::new(Box::new(db), Receiver::Log(folder.path().join("gone").join("log")))
    }

    fn shown(processes: &Processes) -> db::Shown {
        processes.items().list(1).expect("a list").remove(0)
    }

    #[test]
    fn a_run_repeated_leaves_what_one_run_leaves() {
        let processes = processes(&[1_000, 1_010, 1_020, 5_000]);
        for _ in 0..2 {
            processes.price_trend(7).expect("a trend");
            processes.price_anomaly(7).expect("an anomaly");
            let shown = shown(&processes);
            assert_eq!((shown.direction.as_deref(), shown.anomalies), (Some("rising"), 1));
        }
    }

    #[test]
    fn the_first_price_is_neither_trend_nor_anomaly() {
        let processes = processes(&[1_000]);
        processes.price_trend(7).expect("nothing to do");
        processes.price_anomaly(7).expect("nothing to do");
        let shown = shown(&processes);
        assert_eq!((shown.direction, shown.anomalies), (None, 0));
    }

    #[test]
    fn a_notice_that_cannot_be_told_is_an_error_but_not_one_of_nothing() {
        let processes = processes(&[1_000]);
        assert!(processes.new_item(7, TaskId(1)).is_err());
        assert!(processes.new_item(8, TaskId(2)).is_ok());
        assert!(processes.price_trend(8).is_ok() && processes.price_anomaly(8).is_ok());
    }
}
