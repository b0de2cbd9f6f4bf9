//! What the leader measures between two looks: how fast tasks arrive, and how
//! long one takes a processor.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use gristmill_core::{QueueName, QueueStats, WorkerView};

/// A rate is the middle one of so many looks: a burst between two of them is a
/// backlog, and would be counted twice as something that goes on.
const LOOKS: usize = 5;

/// The measured queues.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    at: Option<Duration>,
    queues: HashMap<QueueName, Measured>,
}

#[derive(Debug, Default)]
struct Measured {
    put: u64,
    rates: VecDeque<f64>,
    run_time: Option<Duration>,
}

impl Gauge {
    /// Takes note of the numbers at this time.
    pub(super) fn read(&mut self, stats: &[QueueStats], workers: &[WorkerView], now: Duration) {
        let passed = self.at.replace(now).map(|before| now.saturating_sub(before).as_secs_f64());
        self.queues.retain(|queue, _| stats.iter().any(|stats| stats.queue == *queue));
        for stats in stats {
            let measured = self.queues.entry(stats.queue.clone()).or_default();
            let put = std::mem::replace(&mut measured.put, stats.counters.put);
            if let Some(passed) = passed.filter(|passed| *passed > 0.0) {
                #[expect(clippy::cast_precision_loss, reason = "a rate")]
                let rate = stats.counters.put.saturating_sub(put) as f64 / passed;
                measured.rates.push_back(rate);
                if measured.rates.len() > LOOKS {
                    measured.rates.pop_front();
                }
            }
            // A report tells of the last three seconds; where nothing ran in
            // them, what was known before stays.
            let reports = workers.iter().flat_map(|worker| &worker.report.handled);
            let (mut processed, mut duration) = (0u64, Duration::ZERO);
            for (_, handled) in reports.filter(|(queue, _)| *queue == stats.queue) {
                processed += handled.processed;
                duration += handled.duration;
            }
            if processed > 0 {
                measured.run_time = Some(duration.div_f64(processed_f64(processed)));
            }
        }
    }

    /// Tasks that are put, a second.
    pub(super) fn arriving(&self, queue: &QueueName) -> f64 {
        let rates = self.queues.get(queue).map(|measured| measured.rates.iter().copied());
        let mut rates: Vec<f64> = rates.into_iter().flatten().collect();
        rates.sort_by(f64::total_cmp);
        // Of an even number the lower one: more looks are to come.
        rates.get(rates.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
    }

    /// How long a task takes a processor.
    pub(super) fn run_time(&self, queue: &QueueName) -> Option<Duration> {
        self.queues.get(queue).and_then(|measured| measured.run_time)
    }
}

fn processed_f64(processed: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let processed = processed as f64;
    processed
}
