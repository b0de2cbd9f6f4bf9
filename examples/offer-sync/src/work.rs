//! The queue part, second half: what is done with each task.

use std::sync::Arc;

use gristmill::prelude::*;
use gristmill::worker::WorkReport;

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

#[derive(Clone)]
struct App {
    market: Arc<Market>,
    by: By,
}

async fn sync(task: OfferSyncBatch, State(app): State<App>, context: Context) -> Result<()> {
    let slice = Slice { number: number(app.by, &context)?, limit: task.limit };
    let share = (app.by == By::Hash).then_some(SLOTS);
    app.market.sync(context.id, slice, share).await
}

async fn check(task: ProcessStatusCheck, State(app): State<App>, context: Context) -> Result<()> {
    let slice = Slice { number: number(app.by, &context)?, limit: task.batch_size };
    app.market.check(context.id, slice).await
}

async fn upsert(task: OfferUpsertBatch, State(app): State<App>, context: Context) -> Result<()> {
    app.market.upsert(context.id, task.offers).await
}

/// Serves the three queues until everything is drained, or until a signal.
pub(crate) async fn work(
    mill: &Mill,
    market: Arc<Market>,
    by: By,
    processors: usize,
    drain: bool,
) -> Result<WorkReport> {
    let worker = Worker::new(mill).processors(processors).drain(drain).state(App { market, by });
    Ok(worker.handle(sync).handle(check).handle(upsert).run_until_signalled().await?)
}
