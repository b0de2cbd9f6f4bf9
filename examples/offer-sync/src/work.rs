//! The queue part, second half: what is done with each task.

use std::sync::Arc;

use gristmill::Mill;
use gristmill::worker::{Context, WorkReport, Worker};

use crate::error::{Error, Result};
use crate::market::Market;
use crate::queue::{OfferSyncBatch, OfferUpsertBatch, ProcessStatusCheck, SLOTS};
use crate::slice::{By, Slice};

/// The number that tells a batch its slice.
fn number(by: By, context: &Context) -> Result<u32> {
    match by {
        By::Count => context.concurrent,
        By::Slot | By::Hash => context.slot,
    }
    .ok_or_else(|| Error::from("the queue neither counts nor has slots"))
}

/// Serves the three queues until everything is drained, or until a signal.
pub(crate) async fn work(
    mill: &Mill,
    market: Arc<Market>,
    by: By,
    processors: usize,
    drain: bool,
) -> Result<WorkReport> {
    let (syncs, checks, upserts) = (market.clone(), market.clone(), market);
    let worker = Worker::new(mill)
        .processors(processors)
        .drain(drain)
        .handle(move |task: OfferSyncBatch, context| {
            let market = syncs.clone();
            async move {
                let slice = Slice { number: number(by, &context)?, limit: task.limit };
                let share = (by == By::Hash).then_some(SLOTS);
                market.sync(context.id, slice, share).await
            }
        })
        .handle(move |task: ProcessStatusCheck, context| {
            let market = checks.clone();
            async move {
                let slice = Slice { number: number(by, &context)?, limit: task.batch_size };
                market.check(context.id, slice).await
            }
        })
        .handle(move |task: OfferUpsertBatch, context| {
            let market = upserts.clone();
            async move { market.upsert(context.id, task.offers).await }
        });
    Ok(worker.run_until_signalled().await?)
}
