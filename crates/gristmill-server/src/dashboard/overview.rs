//! The first page: what needs attention, and every queue at a glance.

use std::collections::HashMap;
use std::time::Instant;

use gristmill::port::{Queue, WorkerView};
use gristmill::{QueueName, QueueStats};
use gristmill_contract::settings;
use gristmill_text::ControlPlane;
use maud::{Markup, html};

use super::attention::{self, Answered, HEARD_OF, Known, Notice};
use super::busy::Busy;
use super::chart;
use super::fields::query;
use super::layout::{self, Frame, Section};
use super::pill::pill;
use super::trend::Trend;
use super::view::View;
use super::words::{age, counted, number};
use crate::call::Call;
use crate::problem::Answer;
use crate::service::Service;

/// Most queues on the page.
const LISTED: usize = 200;

/// One line of the table.
struct Row {
    stats: QueueStats,
    queue: Option<Queue>,
    trend: Trend,
    processors: Processors,
}

/// Who serves a queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Processors {
    /// Processors that are on it, or rotate over it and others.
    pub(crate) own: u64,
    pub(crate) rotating: u64,
    /// Workers that claim from it over HTTP.
    pub(crate) claimants: u64,
    /// Of the processors, those that hold something: of any queue, where they rotate.
    pub(crate) busy: Busy,
}

impl Processors {
    pub(crate) const fn is_none(self) -> bool {
        self.own + self.rotating + self.claimants == 0
    }

    pub(crate) fn words(self) -> String {
        let mut parts = Vec::new();
        if self.own > 0 {
            parts.push(number(self.own));
        }
        if self.rotating > 0 {
            parts.push(format!("{} in turn", number(self.rotating)));
        }
        if self.claimants > 0 {
            parts.push(format!("{} over HTTP", number(self.claimants)));
        }
        if parts.is_empty() { "nobody".to_owned() } else { parts.join(", ") }
    }
}

/// Who serves which queue, as their last reports say.
pub(crate) fn processors(
    workers: &[WorkerView],
    claimants: &HashMap<QueueName, u64>,
) -> HashMap<QueueName, Processors> {
    let mut all: HashMap<QueueName, Processors> = HashMap::new();
    let live = workers.iter().filter(|worker| worker.silent_for < HEARD_OF);
    for report in live.map(|worker| &worker.report).filter(|report| !report.stopping) {
        for processor in &report.processors {
            let busy = Busy { busy: u64::from(processor.holding > 0), all: 1 };
            // One that rotates over a single queue serves it as any other does.
            let only = report.queues.first().filter(|_| report.queues.len() == 1);
            match processor.queue.as_ref().or(only) {
                Some(queue) => {
                    let serving = all.entry(queue.clone()).or_default();
                    serving.own += 1;
                    serving.busy.add(busy);
                }
                None => {
                    for queue in &report.queues {
                        let serving = all.entry(queue.clone()).or_default();
                        serving.rotating += 1;
                        serving.busy.add(busy);
                    }
                }
            }
        }
    }
    for (queue, n) in claimants {
        all.entry(queue.clone()).or_default().claimants += n;
    }
    all
}

pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let began = Instant::now();
    let stats = service.sampled.stats(&service).await?;
    let took = began.elapsed();
    let queues = service.store.queues().await?;
    let workers = service.store.workers().await?;
    let serving = processors(&workers, &service.sampled.seen());
    let rows = rows(&service, &stats, queues, &serving).await?;
    let checked = service.checked.of(&service).await;
    let known: Vec<Known<'_>> = rows
        .iter()
        .map(|row| Known {
            stats: &row.stats,
            queue: row.queue.as_ref(),
            trend: &row.trend,
            served: !row.processors.is_none(),
        })
        .collect();
    let oldest_transaction = service.mill.oldest_transaction();
    let store = Answered { took, oldest_transaction };
    let notices = attention::notices(&known, &workers, &checked, store);
    let body = html! {
        h1 { "Overview" }
        @if stats.is_empty() {
            (nothing_yet())
        } @else {
            (attend(&view, &notices))
            (figures(&view, &stats, &rows, &workers))
            (table(&view, &rows, stats.len()))
            (chart::place(&view, None))
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Overview, "Overview").with_charts(), &body))
}

async fn rows(
    service: &Service,
    stats: &[QueueStats],
    queues: Vec<Queue>,
    serving: &HashMap<QueueName, Processors>,
) -> Answer<Vec<Row>> {
    let mut queues: HashMap<QueueName, Queue> =
        queues.into_iter().map(|queue| (queue.name.clone(), queue)).collect();
    let mut rows = Vec::new();
    for one in stats.iter().take(LISTED) {
        rows.push(Row {
            queue: queues.remove(&one.queue),
            trend: service.trends.of(service, &one.queue).await?,
            processors: serving.get(&one.queue).copied().unwrap_or_default(),
            stats: one.clone(),
        });
    }
    Ok(rows)
}

fn nothing_yet() -> Markup {
    html! {
        section.empty {
            h2 { "No queue yet" }
            p { "A queue is declared before anything is put on it: by your program, in "
                code { "gristmill.yaml" } ", or by hand:" }
            pre { code { "gristmill queue add emails\ngristmill put emails '{\"to\":\"ada@example.org\"}'" } }
            p { "This page shows it as soon as it is there." }
        }
    }
}

fn attend(view: &View, notices: &[Notice]) -> Markup {
    let left = notices.len().saturating_sub(attention::LISTED);
    html! {
        section.attention aria-labelledby="attention" {
            h2 #attention { "What needs attention" }
            @if notices.is_empty() {
                p.fine { "Nothing: every queue is served, and nothing has failed." }
            } @else {
                ul {
                    @for notice in notices.iter().take(attention::LISTED) {
                        li data-is=(if notice.grave { "grave" } else { "note" }) {
                            (notice.words) " "
                            @if !notice.link.is_empty() {
                                a href=(view.href(&notice.place)) { (notice.link) }
                            }
                        }
                    }
                    @if left > 0 { li data-is="note" { "And " (counted(left as u64, "more thing")) "." } }
                }
            }
        }
    }
}

fn figures(view: &View, stats: &[QueueStats], rows: &[Row], workers: &[WorkerView]) -> Markup {
    let sum = |of: fn(&QueueStats) -> u64| stats.iter().map(of).sum::<u64>();
    let oldest = stats.iter().filter_map(|one| one.oldest_ready).max();
    let live = workers.iter().filter(|worker| worker.silent_for < HEARD_OF);
    let (mut count, mut busy) = (0, Busy::default());
    for worker in live {
        count += 1;
        busy.add(Busy::of(&worker.report));
    }
    let mut all: Option<Trend> = None;
    for row in rows {
        match &mut all {
            Some(all) => all.add(&row.trend),
            None => all = Some(row.trend),
        }
    }
    let listed = |state: &str| view.href_with("tasks", &query([("state", Some(state))]));
    let figure = |name: &str, n: String, place: Option<String>| {
        html! {
            div {
                dt { (name) }
                dd { @if let Some(place) = place { a href=(place) { (n) } } @else { (n) } }
            }
        }
    };
    html! {
        dl.figures aria-label="All queues together" {
            (figure("ready", number(sum(|s| s.ready)), Some(listed("ready"))))
            (figure("longest wait", oldest.map_or_else(|| "none".to_owned(), age), None))
            (figure("processing", number(sum(|s| s.processing)), Some(listed("processing"))))
            (figure("delayed", number(sum(|s| s.delayed)), Some(listed("delayed"))))
            (figure("failed", number(sum(|s| s.failed)), Some(listed("failed"))))
            @if let Some(all) = &all {
                (figure("put/min", number(all.put_rate()), None))
                (figure("done/min", number(all.done_rate()), None))
            }
            (figure("workers", number(count), Some(view.href("workers"))))
            (figure("processors", number(busy.all), None))
            @if let Some(percent) = busy.percent() {
                (figure("busy", format!("{percent} %"), None))
            }
        }
    }
}

fn table(view: &View, rows: &[Row], all: usize) -> Markup {
    html! {
        section aria-labelledby="queues" {
            h2 #queues { "Queues" }
            div.wide tabindex="0" role="group" aria-labelledby="queues" {
                table.rows.dense {
                    thead {
                        tr {
                            th scope="col" { "Queue" }
                            th scope="col" { "State" }
                            th.n scope="col" { "Ready" }
                            th.n scope="col" title="How long the oldest ready task has been due" { "Oldest" }
                            th.n scope="col" title="How long 95 in 100 of the tasks claimed in the last 15 minutes had been due, at most" { "Wait" }
                            th.n scope="col" { "Processing" }
                            th.n scope="col" { "Delayed" }
                            th.n scope="col" title="Behind another task of its key" { "Blocked" }
                            th.n scope="col" { "Failed" }
                            th.n scope="col" title="Put in the last minute" { "In/min" }
                            th.n scope="col" title="Done in the last minute" { "Out/min" }
                            th scope="col" { "Last hour" }
                            th scope="col" title="Who serves it, and how many of them hold a task" { "Processors" }
                        }
                    }
                    tbody { @for row in rows { (line(view, row)) } }
                }
            }
            @if all > rows.len() {
                p.scope { (number(all as u64)) " in all, " (number(rows.len() as u64)) " shown." }
            }
        }
    }
}

fn line(view: &View, row: &Row) -> Markup {
    let stats = &row.stats;
    let name = stats.queue.as_str();
    let tasks = |state: &str| {
        view.href_with("tasks", &query([("queue", Some(name)), ("state", Some(state))]))
    };
    let number_of = |n: u64, state: &str| {
        html! {
            td.n data-is=[(n > 0).then_some(state)] {
                @if n > 0 { a href=(tasks(state)) { (number(n)) } } @else { span.zero { "0" } }
            }
        }
    };
    let place = view.href(&format!("queues/{name}"));
    let max_wait = row.queue.as_ref().and_then(|queue| queue.settings.max_wait);
    let late = stats.oldest_ready.zip(max_wait).is_some_and(|(waited, most)| waited > most);
    html! {
        tr data-row=(place) {
            th scope="row" { a href=(place) { (name) } }
            td { (state(row)) }
            (number_of(stats.ready, "ready"))
            td.n data-is=[late.then_some("failed")] {
                @match stats.oldest_ready {
                    Some(waited) if stats.ready > 0 => { (age(waited)) }
                    _ => { span.zero { "–" } }
                }
            }
            td.n {
                @match row.trend.waited() {
                    Some((half, most)) => {
                        span title=(format!("Half of them {}", within(half))) { (within(most)) }
                    }
                    None => { span.zero { "–" } }
                }
            }
            (number_of(stats.processing, "processing"))
            (number_of(stats.delayed, "delayed"))
            (number_of(stats.blocked, "blocked"))
            (number_of(stats.failed, "failed"))
            td.n { (rate(row.trend.put_rate())) }
            td.n { (rate(row.trend.done_rate())) }
            td { (row.trend.spark(name)) }
            td { (row.processors.busy.picture()) (row.processors.words()) }
        }
    }
}

/// A bucket of waits in words.
fn within(bucket: &str) -> String {
    if bucket == "longer" { "> 1h".to_owned() } else { format!("≤ {bucket}") }
}

fn rate(n: u64) -> Markup {
    html! { @if n > 0 { (number(n)) } @else { span.zero { "0" } } }
}

fn state(row: &Row) -> Markup {
    let stats = &row.stats;
    html! {
        @if stats.paused {
            (pill("paused", "paused"))
        } @else if row.processors.is_none() {
            (pill("unserved", "not served"))
        } @else {
            (pill("done", "served"))
        }
        @if !stats.can_accept() { " " (pill("failed", "full")) }
        @if let Some(queue) = &row.queue {
            @if let Some(slots) = queue.settings.slots {
                " " (pill("delayed", &counted(u64::from(slots), "slot")))
            }
            @for (name, value) in settings::differing(&queue.settings) {
                @if matches!(name, "concurrency" | "rate") {
                    " " (pill("delayed", &format!("{name} {value}")))
                }
            }
        }
    }
}
