//! One task: what it is, how its attempts went, and what can be done to it.

pub(crate) mod act;
pub(crate) mod all;
mod ended;
pub(crate) mod filter;
pub(crate) mod payload;
mod timeline;

use axum::http::header;
use gristmill::port::put::PARENT;
use gristmill::port::{Action, Ending, KeyStanding, ProgressView};
use gristmill::{Task, TaskId, TaskState};
use gristmill_contract::task_settings;
use maud::{Markup, html};

use super::fields::query;
use super::layout::{self, Frame, Section};
use super::pill;
use super::view::View;
use super::words::{countdown, instant, number};
use crate::call::Call;
use crate::known::Queues;
use crate::message::fields::id;
use crate::problem::Answer;

/// Most other tasks of its key that are named.
const RELATED: usize = 20;

/// `GET /tasks/{id}`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let id = id("id", call.param("id"))?;
    let host = call.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or("localhost:4747").to_owned();
    let service = call.service;
    let Some(task) = service.store.get(id).await? else {
        return ended::page(&service, &view, id).await;
    };
    let ending = match task.state {
        TaskState::Done => ended::look(&service, id).await?,
        _ => Ending::NotKnown,
    };
    let queues = service.known.queues(&service).await?;
    let related = match &task.key {
        Some(key) => service.store.find(&task.queue, std::slice::from_ref(key)).await?,
        None => Vec::new(),
    };
    let title = format!("Task {id}");
    let body = html! {
        p.trail {
            a href=(view.href_with("tasks", &query([("queue", Some(task.queue.as_str()))]))) { (task.queue) }
        }
        h1 { "Task " (id) " " (pill::task(&task, view.now)) }
        (progress(&view, &task))
        @if view.viewer.may_act { (actions(&view, &task)) }
        @if let Some(error) = &task.error {
            section aria-labelledby="error" {
                h2 #error { "Last error" }
                pre.error tabindex="0" { (error) }
            }
        }
        @if let Some(damaged) = &task.damaged {
            p.flash.grave role="alert" { "The store cannot read all of it: " (damaged) }
        }
        div.columns {
            div {
                section aria-labelledby="payload" {
                    h2 #payload { "Payload" }
                    (payload::whole(&task, &queues))
                }
                (ended::result(&ending))
                @if let Some(kept) = &task.checkpoint {
                    section aria-labelledby="kept" {
                        h2 #kept { "Kept for the next attempt" }
                        (checkpoint(kept))
                    }
                }
                section aria-labelledby="attempts" {
                    h2 #attempts { "Attempts" }
                    (timeline::timeline(&view, &task))
                }
            }
            div {
                section aria-labelledby="facts" { h2 #facts { "Facts" } (facts(&view, &task, &queues)) }
                @if related.len() > 1 { (others(&view, &task, &related)) }
                section aria-labelledby="same" { h2 #same { "The same by hand" } (by_hand(&task, &host)) }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Tasks, &title), &body))
}

/// How far it is, while it runs and its handler says so.
fn progress(view: &View, task: &Task) -> Markup {
    let said = task.lease.as_ref().and_then(|lease| lease.progress.as_ref());
    html! {
        @if let Some(ProgressView { progress, at }) = said {
            @if let Some(percent) = progress.percent() {
                progress max="100" value=(percent) aria-label="How far it is" { (percent) " %" }
            }
            p.scope {
                @if let Some(percent) = progress.percent() { (percent) " %: " }
                (progress) ", said " (instant(*at, view.now))
            }
        }
    }
}

fn checkpoint(kept: &[u8]) -> Markup {
    match std::str::from_utf8(kept) {
        Ok(text) => payload::block(text, true),
        Err(_) => {
            html! { p { (number(kept.len() as u64)) " bytes. Only its handler knows what they say." } }
        }
    }
}

fn actions(view: &View, task: &Task) -> Markup {
    let place = view.href(&format!("tasks/{}/act", task.id));
    let can: &[(Action, &str, Option<&str>)] = match task.state {
        TaskState::Failed => &[
            (Action::Retry, "Retry", None),
            (Action::Resolve, "Resolve", None),
            (Action::Discard, "Discard", Some("The task is deleted and does not come back.")),
        ],
        TaskState::Pending => &[(Action::Cancel, "Cancel", Some("The task is deleted."))],
        TaskState::Processing => {
            &[(Action::Cancel, "Cancel", Some("Its worker is asked to stop it."))]
        }
        TaskState::Done => &[],
    };
    html! {
        @if !can.is_empty() {
            form.act method="post" action=(place) aria-label="What to do" {
                input name="note" maxlength="4096" placeholder="Why (a note)" aria-label="A note" autocomplete="off";
                @if task.state == TaskState::Failed {
                    input.when name="when" maxlength="40" placeholder="now, 10m, or a time" aria-label="When to retry" autocomplete="off";
                }
                @for (action, words, ask) in can {
                    button.main[*action == Action::Retry].grave[ask.is_some()]
                        name="action" value=(action.as_str()) data-ask=[ask] { (words) }
                }
                @if task.state == TaskState::Failed && task.checkpoint.is_some() {
                    button name="action" value=(Action::RetryFresh.as_str())
                        title="And forget what its handler kept" { "Retry afresh" }
                }
                a.all href=(view.href_with("put", &query([("copy", Some(task.id.to_string().as_str()))]))) { "Put an edited copy" }
            }
        }
    }
}

fn facts(view: &View, task: &Task, queues: &Queues) -> Markup {
    let now = view.now;
    let listed = |name: &str, value: &str| {
        let queue = ("queue", Some(task.queue.as_str()));
        view.href_with("tasks", &query([queue, (name, Some(value))]))
    };
    let own = task_settings::shown(&task.settings);
    html! {
        dl.facts {
            dt { "queue" } dd { (task.queue) }
            @for (name, value) in [("key", &task.key), ("group", &task.group), ("source", &task.source)] {
                @if let Some(value) = value {
                    dt { (name) } dd { a href=(listed(name, value)) { (value) } }
                }
            }
            @if let Some(parent) = parent(task) {
                dt { "follow-up of" } dd { a href=(view.href(&format!("tasks/{parent}"))) { "#" (parent) } }
            }
            dt { "put" } dd { (instant(task.created_at, now)) }
            dt { "runs" } dd { (instant(task.run_at, now)) }
            dt { "attempts" } dd { (task.attempts) }
            dt { "claims ever" } dd { (task.claims) }
            @if task.expiries > 0 { dt { "leases run out" } dd { (task.expiries) } }
            @if task.priority != 0 { dt { "priority" } dd { (task.priority) } }
            dt { "unique" } dd { (task.unique) }
            @if let Some(lease) = &task.lease {
                dt { "held by" } dd { code { (lease.worker) } }
                dt { "lease ends" } dd { (countdown(lease.until, now)) }
            }
            @if let Some(failed) = task.failed_at { dt { "failed" } dd { (instant(failed, now)) } }
            @if let Some(note) = &task.note { dt { "note" } dd { (note.text) " (" (note.by) ")" } }
            @if let Some(by) = &task.resolved_by { dt { "resolved by" } dd { (by) } }
            @if let Some(most) = queues.max_wait(&task.queue) {
                dt { "max_wait" } dd { (super::words::span(most)) }
            }
            @for (name, value) in &own { dt { (name) } dd { code { (value) } } }
            @for (name, value) in task.headers.iter().filter(|(name, _)| *name != PARENT || parent(task).is_none()) { dt { "header " code { (name) } } dd { code { (value) } } }
        }
    }
}

/// The task that put this one as it ended, if its header names one.
fn parent(task: &Task) -> Option<TaskId> {
    task.headers.get(PARENT)?.parse().ok()
}

fn others(view: &View, task: &Task, related: &[KeyStanding]) -> Markup {
    let others: Vec<_> = related.iter().filter(|one| one.id != task.id).collect();
    html! {
        section aria-labelledby="related" {
            h2 #related { "Others of its key" }
            ul.plain {
                @for one in others.iter().take(RELATED) {
                    li { a href=(view.href(&format!("tasks/{}", one.id))) { "#" (one.id) } " " (one.state) }
                }
            }
            @if others.len() > RELATED {
                p.scope { (number(others.len() as u64)) " in all, " (RELATED) " shown." }
            }
        }
    }
}

fn by_hand(task: &Task, host: &str) -> Markup {
    let id = task.id;
    let verb = match task.state {
        TaskState::Failed => Some("retry"),
        TaskState::Pending | TaskState::Processing => Some("cancel"),
        TaskState::Done => None,
    };
    html! {
        pre.copy tabindex="0" {
            code { "gristmill show " (id) "\n"
                @if let Some(verb) = verb { "gristmill " (verb) " " (id) "\n" }
                "curl " (host) "/v1/tasks/" (id)
                @if let Some(verb) = verb {
                    "\ncurl --json '{\"ids\":[\"" (id) "\"]}' " (host) "/v1/tasks/" (verb)
                }
            }
        }
    }
}
