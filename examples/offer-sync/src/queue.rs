//! The queue part, first half: the three kinds of tasks, how their queues are
//! declared, and how they are put.

use std::time::Duration;

use gristmill::{Accepted, Mill, TaskType};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::slice::By;

/// Batches that run side by side at most where nobody says another number.
pub(crate) const SLOTS: u32 = 3;
/// A dead worker's slots are free again after so long. Workers that live extend their
/// leases every quarter of it, however long a batch takes.
pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// Sync a slice of the offers with the market place.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OfferSyncBatch {
    pub(crate) limit: u32,
}

/// Look how a slice of the running processes is doing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessStatusCheck {
    pub(crate) batch_size: u32,
}

/// Write these offers: article number and price. It brings its list, so it
/// asks for neither count nor slot.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OfferUpsertBatch {
    pub(crate) offers: Vec<(i64, i64)>,
}

impl TaskType for OfferSyncBatch {
    const QUEUE: &'static str = "offer.sync.batch";
}

impl TaskType for ProcessStatusCheck {
    const QUEUE: &'static str = "process.status.check";
}

impl TaskType for OfferUpsertBatch {
    const QUEUE: &'static str = "offer.upsert.batch";
}

/// Says how the queues are. A count tells a batch how many others run. A slot
/// is a number below `slots` that no other running batch of its group has, and
/// so it also limits how many run.
pub(crate) async fn declare(mill: &Mill, by: By, slots: u32, lease: Duration) -> Result<()> {
    for queue in [OfferSyncBatch::QUEUE, ProcessStatusCheck::QUEUE] {
        let declare = mill.declare_queue(queue).lease(lease);
        match by {
            By::Count => declare.count().await?,
            By::Slot | By::Share => declare.slots(slots).await?,
        };
    }
    mill.declare::<OfferUpsertBatch>().await?;
    Ok(())
}

/// Puts a batch. The group is the action: batches of another action are counted
/// apart.
pub(crate) async fn put<T: TaskType>(mill: &Mill, task: T, action: &str) -> Result<Accepted> {
    Ok(mill.put(task).group(action).await?)
}
