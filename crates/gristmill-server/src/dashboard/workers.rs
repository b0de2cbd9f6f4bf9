//! Workers that live, and what they hold: leases that count down.

use gristmill::port::{ListRequest, Order, TaskFilter, WorkerView};
use gristmill::worker::Orders;
use gristmill::{Task, TaskState};
use gristmill_text::ControlPlane;
use maud::{Markup, html};

use super::attention::HEARD_OF;
use super::busy::Busy;
use super::fields::query;
use super::layout::{self, Frame, Section};
use super::pill::pill;
use super::view::View;
use super::words::{age, countdown, counted, excerpt, instant, number, span};
use super::{flash, form};
use crate::call::Call;
use crate::message::fields::{queue, worker};
use crate::problem::{Answer, Problem};
use crate::sampled::Claimant;

/// Most workers and most leases on the page.
const LISTED: usize = 200;
const LEASES: usize = 100;

/// `GET /workers`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let workers = service.store.workers().await?;
    let claimants = service.sampled.claimants();
    let stats = service.sampled.stats(&service).await?;
    let held: u64 = stats.iter().map(|one| one.processing).sum();
    let filter = TaskFilter { state: Some(TaskState::Processing), ..TaskFilter::default() };
    let request = ListRequest { filter, order: Order::Oldest, after: None, limit: LEASES };
    let leases = service.store.list(request).await?.tasks;
    let all = workers.len() + claimants.len();
    let orders = service.mill.worker_orders().await?;
    let body = html! {
        h1 { "Workers" }
        @if all == 0 && leases.is_empty() {
            section.empty {
                h2 { "No worker has reported" }
                p { "A worker is your program with handlers, or a command:" }
                pre { code { "gristmill work emails --exec 'cat'" } }
                p { "Workers in SQL and plain clients of HTTP are seen by what they claim." }
            }
        } @else {
            section {
                div.wide tabindex="0" role="region" aria-label="Workers" {
                    table.rows {
                        thead { tr {
                            th scope="col" { "Worker" } th scope="col" { "State" }
                            th scope="col" { "Where" } th scope="col" { "Queues" }
                            th scope="col" { "Processors" } th scope="col" { "Busy" }
                            th.n scope="col" { "Holds" }
                            th scope="col" { "Since" } th.n scope="col" { "Heard of" }
                            @if view.viewer.may_act { th scope="col" { "Do" } }
                        } }
                        tbody {
                            @for worker in workers.iter().take(LISTED) {
                                (reported(&view, worker, orders.get(&worker.report.id)))
                            }
                            @for one in claimants.iter().take(LISTED.saturating_sub(workers.len())) {
                                (claiming(&view, one))
                            }
                        }
                    }
                }
                @if view.viewer.may_act && !workers.is_empty() {
                    p.scope { "A worker hears of it within eight seconds. Quiet ones claim "
                        "nothing and finish what runs; a program whose only worker stops ends." }
                }
                @if all > LISTED { p.scope { (number(all as u64)) " in all, " (LISTED) " shown." } }
            }
            section aria-labelledby="leases" {
                h2 #leases { "Held now" }
                (held_now(&view, &leases, held))
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Workers, "Workers"), &body))
}

fn reported(view: &View, worker: &WorkerView, orders: Option<&Orders>) -> Markup {
    let report = &worker.report;
    let holding: u64 = report.processors.iter().map(|p| u64::from(p.holding)).sum();
    let longest = report.processors.iter().map(|p| p.cycle).max().unwrap_or_default();
    html! {
        tr {
            th scope="row" { code { (excerpt(report.id.as_str(), 40)) } }
            td {
                @if report.stopping { (pill("paused", "stopping")) }
                @else if worker.silent_for >= HEARD_OF { (pill("failed", "silent")) }
                @else { (pill("done", "live")) }
                @if orders.is_some_and(|orders| orders.quiet) { " " (pill("paused", "quiet")) }
                @if orders.is_some_and(|orders| orders.stop) && !report.stopping { " " (pill("paused", "asked to stop")) }
            }
            td.text { (excerpt(&report.host, 40)) " · " (report.pid) " · " (excerpt(&report.version, 20)) }
            td.wrap { (queues(report.queues.iter().map(|queue| queue.as_str()))) }
            td title=(format!("The longest cycle has taken {}", span(longest))) { (processors(worker)) }
            td { (Busy::of(report).shown()) }
            td.n { (number(holding)) }
            td { (instant(worker.since, view.now)) }
            td.n { (age(worker.silent_for)) " ago" }
            @if view.viewer.may_act { td { (buttons(view, worker, orders)) } }
        }
    }
}

/// What can be wanted of a worker.
fn buttons(view: &View, worker: &WorkerView, orders: Option<&Orders>) -> Markup {
    let (id, quiet) = (&worker.report.id, orders.is_some_and(|orders| orders.quiet));
    let moved = orders.is_some_and(|orders| !orders.moved.is_empty());
    html! {
        form.inline.wraps method="post" action=(view.href("workers/act")) {
            input type="hidden" name="worker" value=(id);
            @if quiet {
                button name="action" value="resume" aria-label=(format!("Resume {id}")) { "Resume" }
            } @else {
                button name="action" value="quiet" aria-label=(format!("Quiet {id}")) { "Quiet" }
            }
            button.grave name="action" value="stop" aria-label=(format!("Stop {id}"))
                data-ask="It claims no more, finishes what runs, and ends." { "Stop" }
            @if worker.report.queues.len() > 1 {
                select name="queue" aria-label=(format!("Queue for a processor of {id}")) {
                    @for queue in worker.report.queues.iter().take(LISTED) { option { (queue) } }
                }
                button name="action" value="move" aria-label=(format!("Move a processor of {id}")) { "Move one there" }
            }
            @if moved {
                button name="action" value="rotate" aria-label=(format!("Let processors of {id} rotate")) { "All in turn" }
            }
        }
    }
}

/// `POST /workers/act`.
pub(crate) async fn act(call: Call, view: View) -> Answer {
    let (service, fields) = form::read(call).await?;
    let id = worker("worker", &fields.one("worker").unwrap_or_default())?;
    let workers = service.store.workers().await?;
    let known = workers.iter().find(|known| known.report.id == id);
    let (did, action) = match fields.one("action").as_deref() {
        Some("quiet") => {
            service.mill.order_worker(&id, |orders| orders.quiet = true).await?;
            ("quiet", "workers.quiet")
        }
        Some("resume") => {
            service.mill.order_worker(&id, |orders| orders.quiet = false).await?;
            ("worker-resumed", "workers.resume")
        }
        Some("stop") => {
            service.mill.order_worker(&id, |orders| orders.stop = true).await?;
            ("worker-stops", "workers.stop")
        }
        Some("rotate") => {
            service.mill.order_worker(&id, |orders| orders.moved.clear()).await?;
            ("rotates", "workers.rotate")
        }
        Some("move") => {
            let to = queue("queue", &fields.one("queue").unwrap_or_default())?;
            let served = known.filter(|known| known.report.queues.contains(&to));
            let served = served.ok_or_else(|| {
                Problem::field("queue", format!("worker {id} has no handler for '{to}'"))
            })?;
            let one_more = |orders: &mut Orders| {
                orders.move_one(&served.report, &to);
            };
            service.mill.order_worker(&id, one_more).await?;
            ("moved", "workers.move")
        }
        _ => {
            return Err(Problem::field("action", "use quiet, resume, stop, move or rotate"));
        }
    };
    view.viewer.caller.note(|deed| {
        deed.action = action.to_owned();
        deed.target = Some(id.to_string());
    });
    flash::see("../workers", did, &[])
}

/// Processors by the queue that they are on.
fn processors(worker: &WorkerView) -> String {
    let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for processor in &worker.report.processors {
        let only = worker.report.queues.first().filter(|_| worker.report.queues.len() == 1);
        let on = processor.queue.as_ref().or(only).map_or("in turn", |queue| queue.as_str());
        *counts.entry(on).or_default() += 1;
    }
    let parts = counts.iter().map(|(on, n)| format!("{n} {on}"));
    parts.take(6).collect::<Vec<_>>().join(", ")
}

fn queues<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(6);
    let mut text = names.take(6).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text += &format!(" and {more} more");
    }
    text
}

fn claiming(view: &View, one: &Claimant) -> Markup {
    html! {
        tr {
            th scope="row" { code { (excerpt(one.worker.as_str(), 40)) } }
            td { (pill("delayed", "over HTTP")) }
            td { span.zero { "–" } }
            td.wrap { (queues(one.queues.iter().map(|queue| queue.as_str()))) }
            td { span.zero { "–" } }
            td { span.zero { "–" } }
            td.n { span.zero { "–" } }
            td { (instant(one.since, view.now)) }
            td.n { (age(one.silent_for)) " ago" }
            @if view.viewer.may_act { td { span.zero { "–" } } }
        }
    }
}

/// What its handler says of it.
fn how_far(task: &Task) -> Markup {
    let said = task.lease.as_ref().and_then(|lease| lease.progress.as_ref());
    let Some(said) = said.map(|view| &view.progress) else { return html! { span.zero { "–" } } };
    html! {
        @if let Some(percent) = said.percent() {
            progress max="100" value=(percent) aria-label="How far it is" {}
        }
        (excerpt(&said.to_string(), 40))
    }
}

fn held_now(view: &View, leases: &[Task], held: u64) -> Markup {
    html! {
        @if leases.is_empty() {
            p.scope { "Nothing is held." }
        } @else {
            div.wide tabindex="0" role="group" aria-labelledby="leases" {
                table.rows {
                    thead { tr {
                        th scope="col" { "Task" } th scope="col" { "Queue" } th scope="col" { "Key" }
                        th scope="col" { "Held by" } th scope="col" { "Claimed" }
                        th scope="col" { "Lease ends" } th scope="col" { "How far" }
                        th.n scope="col" { "Attempt" }
                    } }
                    tbody {
                        @for task in leases {
                            @let place = view.href(&format!("tasks/{}", task.id));
                            tr data-row=(place) {
                                th scope="row" { a href=(place) { "#" (task.id) } }
                                td { (task.queue) }
                                td.text { @if let Some(key) = &task.key { (excerpt(key, 40)) } }
                                td { @if let Some(lease) = &task.lease {
                                    code { (excerpt(lease.worker.as_str(), 40)) }
                                    @if let Some(slot) = lease.slot { " slot " (slot) }
                                } }
                                td { @if let Some(at) = task.claimed_at { (instant(at, view.now)) } }
                                td { @if let Some(lease) = &task.lease {
                                    @if lease.until < view.now { (pill("failed", "ran out")) " " }
                                    (countdown(lease.until, view.now))
                                } }
                                td { (how_far(task)) }
                                td.n { (task.attempts) }
                            }
                        }
                    }
                }
            }
            p.scope {
                (counted(held.max(leases.len() as u64), "task")) " in all, " (number(leases.len() as u64)) " shown. "
                a href=(view.href_with("tasks", &query([("state", Some("processing"))]))) { "As a list" }
            }
        }
    }
}
