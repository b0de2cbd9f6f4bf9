//! The manager's word: how many processors of which worker serve which queue, beside what
//! they report.

use std::collections::{BTreeMap, BTreeSet};

use gristmill::QueueName;
use gristmill::port::{Assignment, WorkerId, WorkerView};
use gristmill_text::ControlPlane;
use maud::{Markup, html};

use super::attention::HEARD_OF;
use super::layout::{self, Frame, Section};
use super::pill::pill;
use super::view::View;
use super::words::{age, excerpt, instant, number};
use crate::call::Call;
use crate::problem::Answer;

/// Most workers and queues in the table.
const ROWS: usize = 100;
const COLUMNS: usize = 30;

/// `GET /manager`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let assignment = service.store.assignment().await?;
    let workers = service.store.workers().await?;
    let stats = service.sampled.stats(&service).await?;
    let queues = service.store.queues().await?;
    let body = html! {
        h1 { "Manager" }
        @match &assignment {
            None => {
                section.empty {
                    h2 { "No manager has spoken" }
                    p { "Processors rotate over the queues of their worker by themselves. A manager moves \
                         them to where work waits; in " code { "gristmill.yaml" } ":" }
                    pre { code { "manager:\n  processors: 8" } }
                }
            }
            Some(assignment) => {
                p.intro {
                    "Term " (number(assignment.term)) ", last spoken " (instant(assignment.published_at, view.now))
                    ". Processors that are not named rotate. " b { "Reported" } " is what workers say they do now."
                }
                (table(assignment, &workers))
                section aria-labelledby="why" {
                    h2 #why { "Why" }
                    p.intro { "A queue gets at least its least processors, then a share by what waits and how \
                               long a task takes, by its weight, never above its most." }
                    div.wide tabindex="0" role="group" aria-labelledby="why" {
                        table {
                            thead { tr { th scope="col" { "Queue" } th.n scope="col" { "Assigned" } th.n scope="col" { "Ready" }
                                th.n scope="col" { "Wait" } th.n scope="col" { "Least" } th.n scope="col" { "Most" }
                                th.n scope="col" { "Weight" } th scope="col" { "Drain within" } } }
                            tbody {
                                @for queue in queues.iter().take(ROWS) {
                                    @let one = stats.iter().find(|one| one.queue == queue.name);
                                    @let of = assignment.shares.iter().filter(|share| share.queue == queue.name);
                                    tr {
                                        th scope="row" { a href=(view.href(&format!("queues/{}", queue.name))) { (queue.name) } }
                                        td.n { (of.map(|share| u64::from(share.processors)).sum::<u64>()) }
                                        td.n { (number(one.map_or(0, |one| one.ready))) }
                                        td.n { (one.and_then(|one| one.oldest_ready).map_or_else(|| "–".to_owned(), age)) }
                                        td.n { (queue.settings.processors_min) }
                                        td.n { @match queue.settings.processors_max { Some(most) => { (most) } None => { "–" } } }
                                        td.n { (queue.settings.processors_weight) }
                                        td { @match queue.settings.drain_within { Some(within) => { (super::words::span(within)) } None => { "–" } } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Manager, "Manager"), &body))
}

fn table(assignment: &Assignment, workers: &[WorkerView]) -> Markup {
    let mut word: BTreeMap<&WorkerId, BTreeMap<&QueueName, u32>> = BTreeMap::new();
    let mut columns: BTreeSet<&QueueName> = BTreeSet::new();
    for share in &assignment.shares {
        word.entry(&share.worker).or_default().insert(&share.queue, share.processors);
        columns.insert(&share.queue);
    }
    let reported = |worker: &WorkerId, queue: &QueueName| {
        let known = workers.iter().find(|known| known.report.id == *worker)?;
        let on = known.report.processors.iter().filter(|p| p.queue.as_ref() == Some(queue));
        Some(on.count())
    };
    let (rows, wide) = (word.len(), columns.len());
    html! {
        section aria-labelledby="word" {
            h2 #word { "Assigned, and reported" }
            @if word.is_empty() { p.scope { "It names no worker: every processor rotates." } } @else {
                div.wide tabindex="0" role="group" aria-labelledby="word" {
                    table {
                        thead { tr {
                            th scope="col" { "Worker" }
                            @for queue in columns.iter().take(COLUMNS) { th.n scope="col" { (queue) } }
                        } }
                        tbody {
                            @for (worker, shares) in word.iter().take(ROWS) {
                                @let known = workers.iter().find(|known| known.report.id == **worker);
                                tr {
                                    th scope="row" { code { (excerpt(worker.as_str(), 40)) } " "
                                        @match known {
                                            None => { (pill("failed", "unknown")) }
                                            Some(known) if known.silent_for >= HEARD_OF => { (pill("failed", "silent")) }
                                            Some(known) if known.report.follows_term != Some(assignment.term) => { (pill("paused", "another term")) }
                                            Some(_) => {}
                                        }
                                    }
                                    @for queue in columns.iter().take(COLUMNS) {
                                        @let told = shares.get(*queue).copied().unwrap_or_default();
                                        td.n { (told) @if let Some(now) = reported(worker, queue) { span.zero { " / " (now) } } }
                                    }
                                }
                            }
                        }
                    }
                }
                @if rows > ROWS || wide > COLUMNS {
                    p.scope { (rows) " workers and " (wide) " queues in all, " (rows.min(ROWS)) " and " (wide.min(COLUMNS)) " shown." }
                }
            }
        }
    }
}
