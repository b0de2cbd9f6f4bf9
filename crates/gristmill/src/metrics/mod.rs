//! The numbers of this process, as Prometheus reads them.
//!
//! ```text
//!   queue_job_processor_cycle_duration_seconds{queue_num}  histogram
//!   queue_slow_cycles_total{queue_num}                     counter, those over 10 s
//!   queue_tasks_in_progress{queue_num}                     gauge
//!   queue_running_workers                                  gauge
//!   queue_running_job_processors                           gauge
//!   queue_oldest_transaction_seconds                       gauge, on PostgreSQL
//! ```
//!
//! Each mill has a registry of its own, [`Mill::metrics`](crate::Mill::metrics),
//! shared by its clones. What can be looked at is looked at when it is asked
//! for and cannot drift; only what is over once it has happened is counted.

mod histogram;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use histogram::Histogram;

/// What a worker is at, when it is asked.
pub(crate) trait Running: Send + Sync {
    /// Processors that run.
    fn processors(&self) -> usize;

    /// Queues by number, with how many of their tasks are in hand.
    fn in_progress(&self) -> Vec<(u32, u64)>;

    /// How long the oldest transaction is open that keeps dead rows of the
    /// store, where the store knows it.
    fn oldest_transaction(&self) -> Option<Duration>;
}

/// A registry.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    workers: Vec<Weak<dyn Running>>,
    cycles: BTreeMap<u32, Histogram>,
    slow: BTreeMap<u32, u64>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker runs until it is dropped.
    pub(crate) fn add_worker(&self, worker: Weak<dyn Running>) {
        let mut state = self.lock();
        state.workers.retain(|worker| worker.strong_count() > 0);
        state.workers.push(worker);
    }

    /// A worker ended.
    pub(crate) fn remove_worker(&self, worker: &Weak<dyn Running>) {
        self.lock().workers.retain(|known| !known.ptr_eq(worker));
    }

    /// A processor's cycle on a queue took so long.
    pub(crate) fn cycle(&self, queue: u32, took: Duration) {
        self.lock().cycles.entry(queue).or_default().observe(took);
    }

    /// A cycle on a queue takes too long.
    pub(crate) fn slow_cycle(&self, queue: u32) {
        *self.lock().slow.entry(queue).or_default() += 1;
    }

    /// All of it in Prometheus's text format.
    #[must_use]
    pub fn text(&self) -> String {
        let (workers, cycles, slow) = {
            let state = self.lock();
            let workers: Vec<_> = state.workers.iter().filter_map(Weak::upgrade).collect();
            (workers, state.cycles.clone(), state.slow.clone())
        };
        let mut in_progress: BTreeMap<u32, u64> = cycles.keys().map(|queue| (*queue, 0)).collect();
        for (queue, tasks) in workers.iter().flat_map(|worker| worker.in_progress()) {
            *in_progress.entry(queue).or_default() += tasks;
        }
        let processors: usize = workers.iter().map(|worker| worker.processors()).sum();
        let mut text = String::new();
        let name = "queue_job_processor_cycle_duration_seconds";
        head(&mut text, name, "How long a processor's cycle on a queue took.", "histogram");
        for (queue, histogram) in &cycles {
            histogram.write(&mut text, name, &format!("queue_num=\"{queue}\""));
        }
        let name = "queue_slow_cycles_total";
        head(&mut text, name, "Cycles that took too long.", "counter");
        for queue in cycles.keys().chain(slow.keys()).collect::<BTreeSet<_>>() {
            let cycles = slow.get(queue).copied().unwrap_or_default();
            let _ = writeln!(text, "{name}{{queue_num=\"{queue}\"}} {cycles}");
        }
        let name = "queue_tasks_in_progress";
        head(&mut text, name, "Tasks that processors have in hand.", "gauge");
        for (queue, tasks) in in_progress {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{queue_num=\"{queue}\"}} {tasks}");
        }
        let name = "queue_running_workers";
        head(&mut text, name, "Workers that run in this process.", "gauge");
        let _ = writeln!(text, "{name} {}", workers.len());
        let name = "queue_running_job_processors";
        head(&mut text, name, "Processors that run in this process.", "gauge");
        let _ = writeln!(text, "{name} {processors}");
        if let Some(open) = workers.iter().filter_map(|worker| worker.oldest_transaction()).max() {
            let name = "queue_oldest_transaction_seconds";
            let help = "How long the oldest transaction is open that keeps dead rows of the store.";
            head(&mut text, name, help, "gauge");
            let _ = writeln!(text, "{name} {}", open.as_secs_f64());
        }
        text
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Running for Two {
        fn processors(&self) -> usize {
            3
        }

        fn in_progress(&self) -> Vec<(u32, u64)> {
            vec![(1, 4), (1, 1)]
        }

        fn oldest_transaction(&self) -> Option<Duration> {
            Some(Duration::from_millis(1_500))
        }
    }

    #[test]
    fn a_worker_counts_while_it_runs() {
        let metrics = Metrics::default();
        let worker: Arc<dyn Running> = Arc::new(Two);
        metrics.add_worker(Arc::downgrade(&worker));
        metrics.cycle(2, Duration::from_millis(30));
        let text = metrics.text();
        for line in [
            "# TYPE queue_job_processor_cycle_duration_seconds histogram",
            "queue_job_processor_cycle_duration_seconds_bucket{queue_num=\"2\",le=\"0.025\"} 0",
            "queue_job_processor_cycle_duration_seconds_bucket{queue_num=\"2\",le=\"0.05\"} 1",
            "queue_job_processor_cycle_duration_seconds_bucket{queue_num=\"2\",le=\"+Inf\"} 1",
            "queue_job_processor_cycle_duration_seconds_sum{queue_num=\"2\"} 0.03",
            "queue_job_processor_cycle_duration_seconds_count{queue_num=\"2\"} 1",
            "queue_tasks_in_progress{queue_num=\"1\"} 5",
            "queue_tasks_in_progress{queue_num=\"2\"} 0",
            "queue_running_workers 1",
            "queue_running_job_processors 3",
            "queue_oldest_transaction_seconds 1.5",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        metrics.remove_worker(&Arc::downgrade(&worker));
        assert!(metrics.text().contains("queue_running_workers 0\n"));
        assert!(!metrics.text().contains("queue_oldest_transaction"), "nobody knows it");
        metrics.add_worker(Arc::downgrade(&worker));
        drop(worker);
        assert!(metrics.text().contains("queue_running_job_processors 0\n"));
    }
}
