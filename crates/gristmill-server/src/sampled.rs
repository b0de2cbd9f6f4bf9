//! Numbers that many may ask for at once, looked up at most once a second.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::WorkerId;
use gristmill::{QueueName, QueueStats, Timestamp};
use tokio::sync::Mutex;

use crate::problem::{Answer, Problem, UNAVAILABLE};
use crate::service::Service;

/// How long a sample is good for.
const FRESH: Duration = Duration::from_millis(900);
/// How long the store may take for one: past it, it is away.
const LOOKS: Duration = Duration::from_secs(2);

/// The last sample.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// Held while one is taken, so that a hundred who ask are one question.
    last: Mutex<Option<(Instant, Arc<Vec<QueueStats>>)>>,
    /// What was done by when, for the rate: a sample every ten seconds, for five
    /// minutes.
    done: std::sync::Mutex<VecDeque<(Instant, HashMap<QueueName, u64>)>>,
    /// Workers that claim through this service, by queue.
    workers: std::sync::Mutex<HashMap<(QueueName, WorkerId), Claiming>>,
}

/// When a worker first and last claimed.
#[derive(Debug, Clone, Copy)]
struct Claiming {
    since: Timestamp,
    last: Instant,
}

/// A worker that claims through this service.
#[derive(Debug)]
pub(crate) struct Claimant {
    pub(crate) worker: WorkerId,
    pub(crate) queues: Vec<QueueName>,
    pub(crate) since: Timestamp,
    pub(crate) silent_for: Duration,
}

/// How often and how long samples for the rate are kept.
const RATED: (Duration, usize) = (Duration::from_secs(10), 30);
/// A worker that did not claim for this long is not counted.
const SILENT: Duration = Duration::from_secs(90);
/// Most workers that are counted.
const COUNTED: usize = 10_000;

impl Sampled {
    /// All queues' numbers, at most a second old.
    pub(crate) async fn stats(&self, service: &Service) -> Answer<Arc<Vec<QueueStats>>> {
        let looking = async {
            let mut last = self.last.lock().await;
            if let Some((at, stats)) = &*last
                && at.elapsed() < FRESH
            {
                return Ok(stats.clone());
            }
            let stats = Arc::new(service.store.stats().await?);
            *last = Some((Instant::now(), stats.clone()));
            self.note(&stats);
            Ok(stats)
        };
        match tokio::time::timeout(LOOKS, looking).await {
            Ok(stats) => stats,
            Err(_) => Err(Problem::new(&UNAVAILABLE, format!("the store took over {LOOKS:?}"))),
        }
    }

    /// Keeps numbers for the rate, now and then.
    pub(crate) fn note(&self, stats: &[QueueStats]) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.back().is_some_and(|(at, _)| at.elapsed() < RATED.0) {
            return;
        }
        let now = stats.iter().map(|one| (one.queue.clone(), one.counters.done)).collect();
        done.push_back((Instant::now(), now));
        while done.len() > RATED.1 {
            done.pop_front();
        }
    }

    /// How long a queue needs for what is ready, at the rate of the last minutes; at
    /// least as long as its oldest task has waited.
    pub(crate) fn backlog(&self, stats: &QueueStats) -> f64 {
        let waited = stats.oldest_ready.unwrap_or_default().as_secs_f64();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, before)) = done.front() else { return waited };
        let before = before.get(&stats.queue).copied().unwrap_or_default();
        let (ended, took) =
            (stats.counters.done.saturating_sub(before), at.elapsed().as_secs_f64());
        if ended == 0 || took < 1.0 {
            return waited;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate, shown with a few digits")]
        let drained_in = stats.ready as f64 * took / ended as f64;
        waited.max(drained_in)
    }

    /// A worker claims from these queues.
    pub(crate) fn saw(&self, worker: &WorkerId, queues: &[QueueName]) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if workers.len() + queues.len() > COUNTED {
            workers.retain(|_, claiming| claiming.last.elapsed() < SILENT);
        }
        for queue in queues {
            let who = (queue.clone(), worker.clone());
            if workers.len() < COUNTED || workers.contains_key(&who) {
                let now = Instant::now();
                let fresh = Claiming { since: crate::route::now(), last: now };
                workers.entry(who).or_insert(fresh).last = now;
            }
        }
    }

    /// Workers that claimed lately, by their ids.
    pub(crate) fn claimants(&self) -> Vec<Claimant> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|_, claiming| claiming.last.elapsed() < SILENT);
        let mut found: BTreeMap<WorkerId, Claimant> = BTreeMap::new();
        for ((queue, worker), claiming) in &*workers {
            let silent_for = claiming.last.elapsed();
            let one = found.entry(worker.clone()).or_insert_with(|| Claimant {
                worker: worker.clone(),
                queues: Vec::new(),
                since: claiming.since,
                silent_for,
            });
            one.queues.push(queue.clone());
            one.since = one.since.min(claiming.since);
            one.silent_for = one.silent_for.min(silent_for);
        }
        let sorted = found.into_values().map(|mut one| {
            one.queues.sort();
            one
        });
        sorted.collect()
    }

    /// How many workers claimed from each queue lately.
    pub(crate) fn seen(&self) -> HashMap<QueueName, u64> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|_, claiming| claiming.last.elapsed() < SILENT);
        let mut counts = HashMap::new();
        for (queue, _) in workers.keys() {
            *counts.entry(queue.clone()).or_default() += 1;
        }
        counts
    }
}
