//! The queue part, second half: what is done with each task.

use std::sync::Arc;
use std::time::Duration;

use gristmill::prelude::*;

use crate::crew::Share;
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

/// A worker of some of the queues.
pub(crate) fn worker(
    mill: &Mill,
    processes: &Arc<Processes>,
    share: &Share,
    (retries, lease): (bool, Option<Duration>),
) -> Worker<Arc<Processes>> {
    let mut worker = Worker::new(mill).processors(share.processors).state(processes.clone());
    for queue in &share.queues {
        worker = match queue.as_str() {
            PriceUpdated::QUEUE => worker.handle(price_updated),
            NewItem::QUEUE => worker.handle(new_item),
            PriceTrend::QUEUE => worker.handle(price_trend),
            _ => worker.handle(price_anomaly),
        };
    }
    // Without retries a claim is the only attempt, and a killed worker's claims are
    // used up: no more is claimed than is begun.
    let worker = if retries { worker } else { worker.batch(1) };
    if let Some(lease) = lease { worker.lease(lease) } else { worker }
}
