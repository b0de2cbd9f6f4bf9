//! The queue part, second half: what is done with each task.

use std::sync::Arc;
use std::time::Duration;

use gristmill::Mill;
use gristmill::worker::{WorkReport, Worker};

use crate::error::Result;
use crate::process::Processes;
use crate::queue::{NewItem, PriceAnomaly, PriceTrend, PriceUpdated};

/// Serves the four queues until everything is drained, or until a signal.
pub(crate) async fn work(
    mill: &Mill,
    processes: Arc<Processes>,
    drain: bool,
    retries: bool,
    lease: Option<Duration>,
) -> Result<WorkReport> {
    let (trends, anomalies, notices) = (processes.clone(), processes.clone(), processes);
    let mut worker = Worker::new(mill)
        .drain(drain)
        .handle(|task: PriceUpdated, context| async move {
            // Both are put as this task settles, or neither. From then on each
            // has its own fate: one can fail without the other.
            context.follow_up(PriceTrend { item: task.item })?;
            context.follow_up(PriceAnomaly { item: task.item })
        })
        .handle(move |task: NewItem, context| {
            notices.clone().run(move |p| p.new_item(task.item, context.id))
        })
        .handle(move |task: PriceTrend, _| trends.clone().run(move |p| p.price_trend(task.item)))
        .handle(move |task: PriceAnomaly, _| {
            anomalies.clone().run(move |p| p.price_anomaly(task.item))
        });
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
