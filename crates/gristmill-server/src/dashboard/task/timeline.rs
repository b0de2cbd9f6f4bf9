//! A task's attempts, one after another: who ran it, how long it waited and ran, and how
//! it ended.

use gristmill::port::{Attempt, AttemptEnd};
use gristmill::{Task, TaskState, Timestamp};
use maud::{Markup, html};

use crate::dashboard::pill::pill;
use crate::dashboard::view::View;
use crate::dashboard::words::{countdown, instant, number, span};

const fn kind(end: AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Done => "done",
        AttemptEnd::Retry | AttemptEnd::Release => "delayed",
        AttemptEnd::Cancelled => "paused",
        AttemptEnd::Error | AttemptEnd::Fail | AttemptEnd::TimedOut | AttemptEnd::Expired => {
            "failed"
        }
    }
}

const fn words(end: AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Done => "done",
        AttemptEnd::Error => "error",
        AttemptEnd::Retry => "asked for another run",
        AttemptEnd::Fail => "gave up for good",
        AttemptEnd::Release => "given back",
        AttemptEnd::TimedOut => "timed out",
        AttemptEnd::Expired => "lease ran out",
        AttemptEnd::Cancelled => "cancelled",
    }
}

/// All that is known of them, the oldest first, and what comes next.
pub(crate) fn timeline(view: &View, task: &Task) -> Markup {
    let now = view.now;
    let forgotten =
        u64::from(task.claims).saturating_sub(task.history.len() as u64 + running(task));
    let mut before = task.created_at;
    html! {
        ol.timeline {
            li data-is="put" {
                p.head { strong { "Put" } " " (instant(task.created_at, now))
                    @if let Some(source) = &task.source { " by " code { (source) } } }
            }
            @if forgotten > 0 && !task.history.is_empty() {
                li data-is="gap" { p.head { (number(forgotten)) " earlier attempts are not kept." } }
            }
            @for attempt in &task.history {
                (one(attempt, before, now))
                @let () = { before = attempt.ended_at };
            }
            @if let Some(lease) = &task.lease {
                li data-is="processing" {
                    p.head { (pill("processing", "running")) " on " code { (lease.worker) } }
                    p {
                        @if let Some(claimed) = task.claimed_at { "claimed " (instant(claimed, now)) ", " }
                        "lease ends " (countdown(lease.until, now))
                        @if let Some(slot) = lease.slot { ", slot " (slot) }
                    }
                }
            } @else if task.state == TaskState::Pending {
                li data-is="next" {
                    p.head {
                        @if task.blocked { "Waits behind another task of its key." }
                        @else if task.run_at > now { "Next attempt " (instant(task.run_at, now)) }
                        @else { "Ready since " (instant(task.run_at, now)) }
                    }
                }
            } @else if let Some(failed) = task.failed_at {
                li data-is="failed" {
                    p.head { strong { "Failed" } " " (instant(failed, now))
                        ": it waits for a person." }
                }
            } @else if let Some(done) = task.resolved_at {
                li data-is="done" {
                    p.head {
                        strong { @if task.resolved_by.is_some() { "Resolved" } @else { "Done" } }
                        " " (instant(done, now))
                        @if let Some(by) = &task.resolved_by { " by " (by) }
                    }
                }
            }
        }
    }
}

fn running(task: &Task) -> u64 {
    u64::from(task.lease.is_some())
}

fn one(attempt: &Attempt, before: Timestamp, now: Timestamp) -> Markup {
    let kind = kind(attempt.end);
    html! {
        li data-is=(kind) {
            p.head {
                (pill(kind, words(attempt.end))) " " (instant(attempt.ended_at, now))
                " on " code { (attempt.worker) }
            }
            p { "waited " (span(attempt.claimed_at.since(before)))
                ", ran " (span(attempt.ended_at.since(attempt.claimed_at))) }
            @if let Some(error) = &attempt.error { pre.error tabindex="0" { (error) } }
        }
    }
}
