//! `/metrics` in Prometheus's text format: the queues' kept numbers, the store's verbs,
//! this service, and the workers of this process.
//!
//! Each series has the queue's name. What the store counts is read from a sample at
//! most a second old, so that many who scrape are one question.

use std::fmt::Write as _;
use std::time::Duration;

use gristmill::port::Counters;
use gristmill::port::observed::BOUNDS;
use gristmill::{QueueName, QueueStats};
use gristmill_text::ControlPlane;

use crate::access::Caller;
use crate::service::Service;

/// The kept counters under the names that dashboards and alerts have.
const COUNTERS: &[(&str, &str, &str)] = &[
    ("put", "gristmill_puts_total", "Tasks enqueued."),
    ("duplicate", "gristmill_duplicates_total", "Puts answered duplicate."),
    ("replaced", "gristmill_replaced_total", "Puts answered replaced."),
    ("refused", "gristmill_refused_total", "Puts answered refused."),
    ("claimed", "gristmill_claimed_total", "Tasks claimed."),
    ("done", "gristmill_done_total", "Attempts settled as done."),
    ("retried", "gristmill_retried_total", "Attempts that returned after an error or retry."),
    ("failed", "gristmill_failed_total", "Tasks that failed for good."),
    ("released", "gristmill_released_total", "Tasks given back."),
    ("expired", "gristmill_leases_expired_total", "Leases of tasks that ran out."),
    ("lease_lost", "gristmill_leases_lost_total", "Settlements answered lease lost."),
    ("cancelled", "gristmill_cancelled_total", "Tasks cancelled by an operator."),
    ("discarded", "gristmill_discarded_total", "Failed tasks discarded."),
    ("resolved", "gristmill_resolved_total", "Failed tasks resolved by hand."),
    ("operator_retried", "gristmill_operator_retried_total", "Failed tasks sent back."),
    ("subject_gone", "gristmill_subject_gone_total", "Tasks deleted with their subject."),
];

/// How long the store may take for what only some of it is told by.
const LOOKS: Duration = Duration::from_secs(2);

/// What the caller may see of it: all, or the series of some queues.
pub(crate) async fn text(service: &Service, caller: &Caller) -> String {
    let text = all(service).await;
    if !caller.is_limited() {
        return text;
    }
    let theirs =
        |line: &&str| line.starts_with('#') || queue_of(line).is_some_and(|q| caller.reaches(&q));
    text.lines().filter(theirs).flat_map(|line| [line, "\n"]).collect()
}

/// The queue that a series is of.
fn queue_of(line: &str) -> Option<QueueName> {
    let name = line.split_once("queue=\"")?.1.split('"').next()?;
    QueueName::new(name).ok()
}

async fn all(service: &Service) -> String {
    let mut text = String::with_capacity(8 << 10);
    let sampled = service.sampled.stats(service).await;
    head(&mut text, "gristmill_store_up", "Whether the store answers.", "gauge");
    let _ = writeln!(text, "gristmill_store_up {}", u8::from(sampled.is_ok()));
    let stats = sampled.unwrap_or_default();
    queues(&mut text, service, &stats).await;
    verbs(&mut text, service);
    http(&mut text, service);
    text += &service.mill.metrics().text();
    text
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A family of gauges with a value a queue, where it has one.
fn each(
    text: &mut String,
    (name, help): (&str, &str),
    stats: &[QueueStats],
    value: impl Fn(&QueueStats) -> Option<f64>,
) {
    head(text, name, help, "gauge");
    for queue in stats {
        if let Some(value) = value(queue) {
            let _ = writeln!(text, "{name}{{queue=\"{}\"}} {value}", queue.queue);
        }
    }
}

async fn queues(text: &mut String, service: &Service, stats: &[QueueStats]) {
    for (counter, name, help) in COUNTERS {
        head(text, name, help, "counter");
        let at = Counters::NAMES.iter().position(|known| known == counter);
        for queue in stats {
            let value = at.and_then(|at| queue.counters.values().get(at).copied());
            let _ = writeln!(text, "{name}{{queue=\"{}\"}} {}", queue.queue, value.unwrap_or(0));
        }
    }
    let name = "gristmill_tasks";
    head(text, name, "Tasks by where they stand.", "gauge");
    for queue in stats {
        for (state, tasks) in [
            ("ready", queue.ready),
            ("delayed", queue.delayed),
            ("blocked", queue.blocked),
            ("processing", queue.processing),
            ("failed", queue.failed),
            ("done", queue.done_kept),
        ] {
            let _ = writeln!(text, "{name}{{queue=\"{}\",state=\"{state}\"}} {tasks}", queue.queue);
        }
    }
    let oldest = ("gristmill_oldest_ready_seconds", "How long the oldest ready task has been due.");
    each(text, oldest, stats, |q| Some(q.oldest_ready.unwrap_or_default().as_secs_f64()));
    let backlog = (
        "gristmill_backlog_seconds",
        "How long the queue needs for what is ready, at the rate of the last minutes; at least \
         as long as its oldest task has waited. For autoscalers.",
    );
    each(text, backlog, stats, |queue| Some(service.sampled.backlog(queue)));
    each(text, ("gristmill_paused", "Whether claims are stopped."), stats, |queue| {
        Some(f64::from(u8::from(queue.paused)))
    });
    #[expect(clippy::cast_precision_loss, reason = "a size, shown with a few digits")]
    each(text, ("gristmill_capacity", "Most pending tasks, where limited."), stats, |queue| {
        queue.capacity.map(|capacity| capacity as f64)
    });
    if let Ok(known) = service.known.queues(service).await {
        let wait = ("gristmill_max_wait_seconds", "How long a task may wait, where it is set.");
        each(text, wait, stats, |queue| {
            known.max_wait(&queue.queue).map(|wait| wait.as_secs_f64())
        });
    }
    workers(text, service, stats).await;
}

/// Workers by queue: those that report to the store, and those that claim here.
async fn workers(text: &mut String, service: &Service, stats: &[QueueStats]) {
    let Ok(Ok(known)) = tokio::time::timeout(LOOKS, service.store.workers()).await else { return };
    let mut counts = service.sampled.seen();
    for view in known.iter().filter(|view| view.silent_for < Duration::from_secs(90)) {
        for queue in &view.report.queues {
            *counts.entry(queue.clone()).or_default() += 1;
        }
    }
    let family = ("gristmill_workers", "Workers heard of within 90 seconds that serve the queue.");
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    each(text, family, stats, |q| Some(counts.get(&q.queue).copied().unwrap_or_default() as f64));
    if let Ok(Ok(Some(word))) = tokio::time::timeout(LOOKS, service.store.assignment()).await {
        let name = "gristmill_manager_silent_seconds";
        head(text, name, "How long ago the manager last spoke.", "gauge");
        let silent = crate::route::now().since(word.published_at).as_secs_f64();
        let _ = writeln!(text, "{name} {silent}");
    }
}

fn verbs(text: &mut String, service: &Service) {
    let name = "gristmill_store_call_seconds";
    head(text, name, "How long this process's calls of the store's verbs took.", "histogram");
    let called = || service.mill.verbs().iter().filter(|(_, numbers)| numbers.calls() > 0);
    for (verb, numbers) in called() {
        let within = numbers.within();
        for (bound, calls) in BOUNDS.iter().zip(within) {
            let bound = Duration::from_millis(*bound).as_secs_f64();
            let _ = writeln!(text, "{name}_bucket{{verb=\"{verb}\",le=\"{bound}\"}} {calls}");
        }
        let all = within.last().copied().unwrap_or_default();
        let _ = writeln!(text, "{name}_bucket{{verb=\"{verb}\",le=\"+Inf\"}} {all}");
        let sum = numbers.time().as_secs_f64();
        let _ = writeln!(text, "{name}_sum{{verb=\"{verb}\"}} {sum}");
        let _ = writeln!(text, "{name}_count{{verb=\"{verb}\"}} {all}");
    }
    let name = "gristmill_store_errors_total";
    head(text, name, "Calls that ended in an error.", "counter");
    for (verb, numbers) in called() {
        let _ = writeln!(text, "{name}{{verb=\"{verb}\"}} {}", numbers.errors());
    }
    if let Some(postgres) = service.mill.postgres() {
        let used = postgres.pool_use();
        let name = "gristmill_store_connections";
        head(text, name, "Connections to the store's server.", "gauge");
        for (state, connections) in [("busy", used.busy), ("idle", used.idle), ("most", used.most)]
        {
            let _ = writeln!(text, "{name}{{state=\"{state}\"}} {connections}");
        }
    }
}

fn http(text: &mut String, service: &Service) {
    let name = "gristmill_http_answers_total";
    head(text, name, "Answers by the class of their status.", "counter");
    for (class, count) in service.answered() {
        let _ = writeln!(text, "{name}{{status=\"{class}xx\"}} {count}");
    }
    let name = "gristmill_http_tokens_refused_total";
    head(text, name, "Requests with a token that is not known.", "counter");
    let _ = writeln!(text, "{name} {}", service.door.refused());
    let name = "gristmill_http_connections";
    head(text, name, "Connections that are open.", "gauge");
    let _ = writeln!(text, "{name} {}", service.connections.count());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_series() {
        for name in Counters::NAMES {
            assert!(COUNTERS.iter().any(|(known, ..)| known == name), "{name}");
        }
    }
}
