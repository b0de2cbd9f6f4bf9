//! The numbers of this process, as Prometheus reads them.
//!
//! ```text
//!   queue_job_processor_cycle_duration_seconds{queue,queue_num}  histogram
//!   queue_slow_cycles_total{queue,queue_num}        counter, those over 10 s
//!   queue_tasks_in_progress{queue,queue_num}        gauge
//!   queue_running_workers                           gauge
//!   queue_running_job_processors                    gauge
//!   queue_oldest_transaction_seconds                gauge, on PostgreSQL
//!   gristmill_wait_seconds{queue}                   histogram, due to the handler's start
//!   gristmill_run_seconds{queue}                    histogram, a handler's run
//!   gristmill_attempts_total{queue,outcome}         counter, how attempts ended
//! ```
//!
//! Each mill has a registry of its own, [`Mill::metrics`](crate::Mill::metrics),
//! shared by its clones. What can be looked at is looked at when it is asked
//! for and cannot drift; only what is over once it has happened is counted.

mod histogram;
mod queue;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gristmill_core::QueueName;
use histogram::Histogram;
pub(crate) use queue::QueueNumbers;

/// What a worker is at, when it is asked.
pub(crate) trait Running: Send + Sync {
    /// Processors that run.
    fn processors(&self) -> usize;

    /// Queues by number and name, with how many of their tasks are in hand.
    fn in_progress(&self) -> Vec<(u32, QueueName, u64)>;

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
    cycles: BTreeMap<u32, Arc<Histogram>>,
    slow: BTreeMap<u32, u64>,
    names: BTreeMap<u32, QueueName>,
    queues: BTreeMap<QueueName, Arc<QueueNumbers>>,
}

impl State {
    fn named(&mut self, number: u32, name: &QueueName) {
        if self.names.get(&number) != Some(name) {
            self.names.insert(number, name.clone());
        }
    }

    /// How a queue is named in a series.
    fn label(&self, number: u32) -> String {
        let name = self.names.get(&number).map_or("", QueueName::as_str);
        format!("queue=\"{name}\",queue_num=\"{number}\"")
    }
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

    /// The numbers of a queue's attempts, to be counted on.
    pub(crate) fn queue(&self, name: &QueueName) -> Arc<QueueNumbers> {
        self.lock().queues.entry(name.clone()).or_default().clone()
    }

    /// Tasks were handed to a worker of another process, each so long after it was due.
    pub fn waited(&self, queue: &QueueName, waits: impl IntoIterator<Item = Duration>) {
        let numbers = self.queue(queue);
        waits.into_iter().for_each(|wait| numbers.waited(wait));
    }

    /// A processor's cycle on a queue took so long.
    pub(crate) fn cycle(&self, number: u32, queue: &QueueName, took: Duration) {
        let mut state = self.lock();
        state.named(number, queue);
        state.cycles.entry(number).or_default().observe(took);
    }

    /// A cycle on a queue takes too long.
    pub(crate) fn slow_cycle(&self, number: u32, queue: &QueueName) {
        let mut state = self.lock();
        state.named(number, queue);
        *state.slow.entry(number).or_default() += 1;
    }

    /// All of it in Prometheus's text format.
    #[must_use]
    pub fn text(&self) -> String {
        // Asked without the lock: a worker has locks of its own.
        let workers: Vec<_> = self.lock().workers.iter().filter_map(Weak::upgrade).collect();
        let held: Vec<_> = workers.iter().flat_map(|worker| worker.in_progress()).collect();
        let mut state = self.lock();
        let mut in_progress: BTreeMap<u32, u64> =
            state.cycles.keys().map(|queue| (*queue, 0)).collect();
        for (number, name, tasks) in &held {
            state.named(*number, name);
            *in_progress.entry(*number).or_default() += tasks;
        }
        let labels: BTreeMap<u32, String> =
            state.names.keys().map(|number| (*number, state.label(*number))).collect();
        let (cycles, slow, queues) =
            (state.cycles.clone(), state.slow.clone(), state.queues.clone());
        drop(state);
        let label = |number: &u32| labels.get(number).map_or("", String::as_str);
        let processors: usize = workers.iter().map(|worker| worker.processors()).sum();
        let mut text = String::new();
        let name = "queue_job_processor_cycle_duration_seconds";
        head(&mut text, name, "How long a processor's cycle on a queue took.", "histogram");
        for (queue, histogram) in &cycles {
            histogram.write(&mut text, name, label(queue));
        }
        let name = "queue_slow_cycles_total";
        head(&mut text, name, "Cycles that took too long.", "counter");
        for queue in cycles.keys().chain(slow.keys()).collect::<BTreeSet<_>>() {
            let cycles = slow.get(queue).copied().unwrap_or_default();
            let _ = writeln!(text, "{name}{{{}}} {cycles}", label(queue));
        }
        let name = "queue_tasks_in_progress";
        head(&mut text, name, "Tasks that processors have in hand.", "gauge");
        for (queue, tasks) in in_progress {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{{}}} {tasks}", label(&queue));
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
        attempts(&mut text, &queues);
        text
    }
}

/// What attempts came to.
fn attempts(text: &mut String, queues: &BTreeMap<QueueName, Arc<QueueNumbers>>) {
    let waits = "gristmill_wait_seconds";
    head(text, waits, "From due to the handler's start, or to a claim over HTTP.", "histogram");
    for (queue, numbers) in queues {
        numbers.waits().write(text, waits, &format!("queue=\"{queue}\""));
    }
    let runs = "gristmill_run_seconds";
    head(text, runs, "How long handlers ran.", "histogram");
    for (queue, numbers) in queues {
        numbers.runs().write(text, runs, &format!("queue=\"{queue}\""));
    }
    let ends = "gristmill_attempts_total";
    head(text, ends, "Attempts of this process's workers by how they ended.", "counter");
    for (queue, numbers) in queues {
        numbers.write_ends(text, ends, queue.as_str());
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_core::AttemptEnd;

    struct Two;

    fn name(queue: &str) -> QueueName {
        QueueName::new(queue).expect("a name")
    }

    impl Running for Two {
        fn processors(&self) -> usize {
            3
        }

        fn in_progress(&self) -> Vec<(u32, QueueName, u64)> {
            vec![(1, name("a"), 4), (1, name("a"), 1)]
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
        metrics.cycle(2, &name("b"), Duration::from_millis(30));
        let numbers = metrics.queue(&name("b"));
        numbers.waited(Duration::from_secs(90));
        numbers.ran(Duration::from_millis(30));
        numbers.ended(AttemptEnd::TimedOut, 2);
        let text = metrics.text();
        for line in [
            "# TYPE queue_job_processor_cycle_duration_seconds histogram",
            "queue_job_processor_cycle_duration_seconds_bucket{queue=\"b\",queue_num=\"2\",le=\"0.025\"} 0",
            "queue_job_processor_cycle_duration_seconds_bucket{queue=\"b\",queue_num=\"2\",le=\"0.05\"} 1",
            "queue_job_processor_cycle_duration_seconds_bucket{queue=\"b\",queue_num=\"2\",le=\"+Inf\"} 1",
            "queue_job_processor_cycle_duration_seconds_sum{queue=\"b\",queue_num=\"2\"} 0.03",
            "queue_job_processor_cycle_duration_seconds_count{queue=\"b\",queue_num=\"2\"} 1",
            "queue_tasks_in_progress{queue=\"a\",queue_num=\"1\"} 5",
            "queue_tasks_in_progress{queue=\"b\",queue_num=\"2\"} 0",
            "queue_running_workers 1",
            "queue_running_job_processors 3",
            "queue_oldest_transaction_seconds 1.5",
            "gristmill_wait_seconds_bucket{queue=\"b\",le=\"60\"} 0",
            "gristmill_wait_seconds_bucket{queue=\"b\",le=\"+Inf\"} 1",
            "gristmill_wait_seconds_sum{queue=\"b\"} 90",
            "gristmill_run_seconds_bucket{queue=\"b\",le=\"0.05\"} 1",
            "gristmill_run_seconds_count{queue=\"b\"} 1",
            "gristmill_attempts_total{queue=\"b\",outcome=\"timed_out\"} 2",
            "gristmill_attempts_total{queue=\"b\",outcome=\"done\"} 0",
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
