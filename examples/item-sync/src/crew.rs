//! Who serves which queue: the queues that were given processors of their own have a
//! worker each, and one serves the others. So a kind whose processing hangs holds up no
//! other kind.

use std::future::Future;
use std::time::Duration;

use gristmill::TaskType;
use gristmill::signal::Signals;
use gristmill::worker::{WorkReport, Worker};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::Processors;
use crate::error::Result;
use crate::queue::{NewItem, PriceAnomaly, PriceTrend, PriceUpdated};

/// The queues.
pub(crate) const QUEUES: [&str; 4] =
    [PriceUpdated::QUEUE, NewItem::QUEUE, PriceTrend::QUEUE, PriceAnomaly::QUEUE];

/// A worker's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) queues: Vec<String>,
    pub(crate) processors: usize,
}

/// Shares the served queues out; none said is all of them.
pub(crate) fn shares(served: &[String], processors: &[Processors]) -> Result<Vec<Share>> {
    let mut rest = Share { queues: Vec::new(), processors: 1 };
    let mut shares = Vec::new();
    if let Some(all) = processors.iter().rfind(|said| said.queue.is_none()) {
        rest.processors = all.count;
    }
    let is_served = |queue: &str| served.is_empty() || served.iter().any(|name| name == queue);
    for queue in QUEUES {
        let own = processors.iter().rfind(|said| said.queue.as_deref() == Some(queue));
        match own {
            Some(own) if is_served(queue) => {
                shares.push(Share { queues: vec![queue.to_owned()], processors: own.count });
            }
            Some(_) => return Err(format!("{queue} has processors but is not served").into()),
            None if is_served(queue) => rest.queues.push(queue.to_owned()),
            None => {}
        }
    }
    if !rest.queues.is_empty() {
        shares.push(rest);
    }
    Ok(shares)
}

/// When the work ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    /// When nothing is due.
    pub(crate) drained: bool,
    /// After so long.
    pub(crate) budget: Option<Duration>,
}

/// Runs the workers side by side, until all is drained, the time is over, or a signal.
pub(crate) async fn run<S: Clone + Send + Sync + 'static>(
    workers: impl Fn() -> Vec<Worker<S>>,
    until: Until,
) -> Result<WorkReport> {
    let signals = Signals::listen()?;
    let several = workers().len() > 1;
    let end = until.budget.map(|budget| Instant::now() + budget);
    let mut total = WorkReport::default();
    loop {
        let mut running = JoinSet::new();
        for worker in workers() {
            signals.stops(&worker);
            let stop = ended(signals.asked(), end);
            running.spawn(worker.drain(until.drained).run(stop));
        }
        let mut round = WorkReport::default();
        while let Some(ended) = running.join_next().await {
            round.add(&ended??);
        }
        total.add(&round);
        signals.ended(&total);
        // One worker's tasks put tasks that another one serves, which was drained by
        // then: it is over when a round found nothing.
        let over = signals.count() > 0 || end.is_some_and(|end| end <= Instant::now());
        let alone = !until.drained || !several;
        if over || alone || round.done + round.not_done + round.gone == 0 {
            return Ok(total);
        }
    }
}

async fn ended(asked: impl Future<Output = ()>, end: Option<Instant>) {
    let over = async {
        match end {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = asked => {}
        () = over => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(served: &[&str], processors: &[&str]) -> Vec<(String, usize)> {
        let served: Vec<String> = served.iter().map(ToString::to_string).collect();
        let processors: Vec<Processors> =
            processors.iter().map(|text| text.parse().expect("processors")).collect();
        let shares = shares(&served, &processors).expect("shares");
        shares.into_iter().map(|share| (share.queues.join(" "), share.processors)).collect()
    }

    #[test]
    fn a_queue_with_processors_of_its_own_has_a_worker_of_its_own() {
        let all = QUEUES.join(" ");
        assert_eq!(told(&[], &[]), [(all.clone(), 1)]);
        assert_eq!(told(&[], &["4"]), [(all, 4)]);
        let rest = "PRICE_UPDATED price-trend price-anomaly".to_owned();
        assert_eq!(told(&[], &["4", "NEW_ITEM=2"]), [("NEW_ITEM".to_owned(), 2), (rest, 4)]);
        assert_eq!(told(&["NEW_ITEM"], &["3"]), [("NEW_ITEM".to_owned(), 3)]);
    }

    #[test]
    fn processors_of_a_queue_that_is_not_served_are_a_mistake() {
        let own = "NEW_ITEM=2".parse().expect("processors");
        assert!(shares(&["price-trend".to_owned()], &[own]).is_err());
    }
}
