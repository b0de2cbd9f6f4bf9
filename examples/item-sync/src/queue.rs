//! The queue part, first half: which tasks there are, and how their
//! queues are declared.

use gristmill::{Mill, TaskType, Unique};
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Every task is about one item, and its key is the item's id.
macro_rules! task {
    ($(#[$doc:meta])* $name:ident = $queue:literal) => {
        $(#[$doc])*
        #[derive(Debug, Serialize, Deserialize)]
        pub(crate) struct $name {
            pub(crate) item: i64,
        }

        impl TaskType for $name {
            const QUEUE: &'static str = $queue;

            fn key(&self) -> Option<String> {
                Some(self.item.to_string())
            }
        }
    };
}
task!(
    /// An item has a new price.
    PriceUpdated = "PRICE_UPDATED"
);
task!(
    /// An item was seen for the first time.
    NewItem = "NEW_ITEM"
);
task!(
    /// An item's trend is to be computed anew.
    PriceTrend = "price-trend"
);
task!(
    /// An item's newest price is to be compared with those before it.
    PriceAnomaly = "price-anomaly"
);

/// Says how the queues are. Failures wait for a person at once, unless
/// retries are asked for. The sync's two queues skip what stands or runs, which
/// loses nothing: its follow-ups are still ahead of it, and read the prices as
/// they are then. A change in the middle of a follow-up's run needs another
/// one: for them only a waiting task counts (`unique: pending`).
pub(crate) async fn declare(mill: &Mill, retries: bool) -> Result<()> {
    let max_attempts = if retries { 5 } else { 1 };
    for (queue, unique) in [
        (PriceUpdated::QUEUE, Unique::Active),
        (NewItem::QUEUE, Unique::Active),
        (PriceTrend::QUEUE, Unique::Pending),
        (PriceAnomaly::QUEUE, Unique::Pending),
    ] {
        let declaring = mill.declare_queue(queue).max_attempts(max_attempts).unique(unique);
        declaring.bind("item", "id").await?;
    }
    Ok(())
}
