//! The queue part, second half: what is done with each task.

use std::sync::Arc;
use std::time::Duration;

use gristmill::prelude::*;
use gristmill::worker::WorkReport;

use crate::error::Result;
use crate::process::Processes;
use crate::queue::{NewItem, PriceAnomaly, PriceTrend, PriceUpdated};

type Shared = State<Arc<Processes>>;

/// Both are put as this task settles, or neither. From then on each has its own
/// fate: one can fail without the other.
async fn price_updated(task: PriceUpdated, context: Context) -> Result<()> {
    context.follow_up(PriceTrend { item: task.item })?;
    context.follow_up(PriceAnomaly { item: task.item })?;
    Ok(())
}

async fn new_item(task: NewItem, State(shop): Shared, context: Context) -> Result<()> {
    shop.run(move |shop| shop.new_item(task.item, context.id)).await
}

async fn price_trend(task: PriceTrend, State(shop): Shared) -> Result<()> {
    shop.run(move |shop| shop.price_trend(task.item)).await
}

async fn price_anomaly(task: PriceAnomaly, State(shop): Shared) -> Result<()> {
    shop.run(move |shop| shop.price_anomaly(task.item)).await
}

/// Serves the four queues until everything is drained, or until a signal.
pub(crate) async fn work(
    mill: &Mill,
    processes: Arc<Processes>,
    drain: bool,
    retries: bool,
    lease: Option<Duration>,
) -> Result<WorkReport> {
    let worker = Worker::new(mill).drain(drain).state(processes);
    let mut worker =
        worker.handle(price_updated).handle(new_item).handle(price_trend).handle(price_anomaly);
    if !retries {
        // A claim is the only attempt then, and a killed worker's claims are
        // used up: no more is claimed than is begun.
        worker = worker.batch(1);
    }
    if let Some(lease) = lease {
        worker = worker.lease(lease);
    }
    Ok(worker.run_until_signalled().await?)
}
