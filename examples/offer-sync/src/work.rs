//! The queue part, second half: what is done with each task.

use std::sync::Arc;

use gristmill::prelude::*;
use gristmill::worker::WorkReport;

use crate::error::Result;
use crate::hands;
use crate::market::Market;
use crate::queue::{OfferSyncBatch, OfferUpsertBatch, ProcessStatusCheck};
use crate::slice::{By, Slice};

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) market: Arc<Market>,
    pub(crate) by: By,
    pub(crate) slots: u32,
}

async fn sync(task: OfferSyncBatch, State(app): State<App>, context: Context) -> Result<()> {
    let slice = Slice { number: app.by.number(&context)?, limit: task.limit };
    if app.by != By::Share {
        return app.market.sync(&context, slice).await;
    }
    hands::free_of_gone(context.mill(), &app.market, context.id).await?;
    tokio::select! {
        synced = app.market.sync_due(&context, slice, app.slots) => synced,
        () = context.cancelled() => hands::let_go(&context, &app.market).await,
    }
}

async fn check(task: ProcessStatusCheck, State(app): State<App>, context: Context) -> Result<()> {
    let slice = Slice { number: app.by.number(&context)?, limit: task.batch_size };
    app.market.check(&context, slice).await
}

async fn upsert(task: OfferUpsertBatch, State(app): State<App>, context: Context) -> Result<()> {
    app.market.upsert(&context, task.offers).await
}

/// Serves the three queues until everything is drained, or until a signal.
pub(crate) async fn work(
    mill: &Mill,
    app: App,
    processors: usize,
    drain: bool,
) -> Result<WorkReport> {
    let worker = Worker::new(mill).processors(processors).drain(drain).state(app);
    Ok(worker.handle(sync).handle(check).handle(upsert).run_until_signalled().await?)
}
