//! Operations: what is done to all tasks that match, how far it is, and its end by hand.

use maud::{Markup, html};

use super::layout::{self, Frame, Section};
use super::pill::pill;
use super::view::View;
use super::words::{counted, excerpt, instant, number};
use super::{flash, form};
use crate::call::Call;
use crate::operation::{OperationState, OperationView};
use crate::problem::{Answer, NO_OPERATION, Problem};

/// Most on the page.
const LISTED: usize = 200;

const fn state(state: OperationState) -> (&'static str, &'static str) {
    match state {
        OperationState::Running => ("processing", "running"),
        OperationState::Stopping => ("paused", "stopping"),
        OperationState::Done => ("done", "done"),
        OperationState::Stopped => ("paused", "stopped"),
        OperationState::Failed => ("failed", "failed"),
    }
}

const fn is_over(state: OperationState) -> bool {
    !matches!(state, OperationState::Running | OperationState::Stopping)
}

/// When something was, as the record of an operation has it.
fn when(view: &View, text: &str) -> Markup {
    match text.parse() {
        Ok(at) => instant(at, view.now),
        Err(_) => html! { (text) },
    }
}

/// `GET /operations`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let all = call.service.operations.list().await?;
    let body = html! {
        h1 { "Operations" }
        p.intro { "What is done to every task that matches a filter. One that is over is kept for a week." }
        @if all.is_empty() {
            section.empty {
                h2 { "No operation" }
                p { "Filter the " a href=(view.href("tasks")) { "tasks" }
                    ", then choose what to do with all that match; or by hand:" }
                pre { code { "gristmill retry --queue emails --note 'the mail server is back'" } }
            }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Operations" {
                table.rows {
                    thead { tr {
                        th scope="col" { "Operation" } th scope="col" { "State" }
                        th scope="col" { "Which tasks" } th.n scope="col" { "Moved" }
                        th.n scope="col" { "Not moved" } th scope="col" { "Begun" }
                        th scope="col" { "By" } th scope="col" { "Note" }
                    } }
                    tbody { @for one in all.iter().take(LISTED) { (line(&view, one)) } }
                }
            }
            @if all.len() > LISTED {
                p.scope { (number(all.len() as u64)) " in all, " (LISTED) " shown." }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Operations, "Operations"), &body))
}

fn line(view: &View, one: &OperationView) -> Markup {
    let (kind, words) = state(one.state);
    let place = view.href(&format!("operations/{}", one.id));
    html! {
        tr data-row=(place) {
            th scope="row" { a href=(place) { (one.action) } }
            td { (pill(kind, words)) }
            td.text { (which(one)) }
            td.n { (number(one.moved)) }
            td.n { (number(one.duplicates + one.held + one.others)) }
            td { (when(view, &one.began_at)) }
            td.text { (excerpt(&one.by, 40)) }
            td.text.long { @if let Some(note) = &one.note { (excerpt(note, 80)) } }
        }
    }
}

fn which(one: &OperationView) -> Markup {
    let meant = one.meant();
    html! {
        @if meant.is_empty() { "all" }
        @for (at, (name, value)) in meant.iter().enumerate() {
            @if at > 0 { ", " }
            (name) " " code { (excerpt(value, 60)) }
        }
    }
}

/// `GET /operations/{id}`.
pub(crate) async fn one(call: Call, view: View) -> Answer {
    let id = call.param("id");
    let found = call.service.operations.get(id).await?;
    let one = found.ok_or_else(|| {
        Problem::new(&NO_OPERATION, format!("no operation '{}' is known", excerpt(id, 40)))
    })?;
    let (kind, words) = state(one.state);
    let seen = one.moved + one.duplicates + one.held + one.others;
    let expected = view.query.number("of").filter(|n| *n > 0);
    let over = is_over(one.state);
    let title = format!("Operation: {}", one.action);
    let body = html! {
        p.trail { a href=(view.href("operations")) { "Operations" } }
        h1 { (one.action) " " (pill(kind, words)) }
        section.card {
            p.count {
                strong { (counted(one.moved, "task")) } " moved"
                @if let Some(expected) = expected { " of about " (number(expected)) }
                "."
            }
            @if let Some(expected) = expected {
                progress aria-label="How far it is" max=(expected.max(seen))
                    value=(if one.state == OperationState::Done { expected.max(seen) } else { seen }) {}
            } @else if !over {
                progress aria-label="It goes on" {}
            }
            dl.facts {
                dt { "which tasks" } dd { (which(&one)) }
                @if one.duplicates > 0 {
                    dt { "stay failed" } dd { (number(one.duplicates)) ": another task holds the key’s place" }
                }
                @if one.held > 0 {
                    dt { "held" } dd { (number(one.held)) ": somebody’s open transaction is in the way" }
                }
                @if one.others > 0 { dt { "passed over" } dd { (number(one.others)) ": they changed meanwhile" } }
                dt { "by" } dd { (one.by) }
                @if let Some(note) = &one.note { dt { "note" } dd { (note) } }
                dt { "begun" } dd { (when(&view, &one.began_at)) }
                dt { @if over { "ended" } @else { "last step" } } dd { (when(&view, &one.changed_at)) }
                @if let Some(by) = &one.stopped_by { dt { "stopped by" } dd { (by) } }
                @if let Some(why) = &one.why { dt { "why it failed" } dd { (why) } }
            }
            @if !over && one.state != OperationState::Stopping && view.viewer.may_act {
                form method="post" action=(view.href(&format!("operations/{}/stop", one.id))) {
                    button.grave data-ask="It ends after the step it is at. What is done stays done." { "Stop" }
                }
            }
        }
    };
    let frame = Frame::of(Section::Operations, &title);
    let frame = if over { frame.still() } else { frame };
    Ok(layout::page(&view, &frame, &body))
}

/// `POST /operations/{id}/stop`.
pub(crate) async fn stop(call: Call, view: View) -> Answer {
    let id = call.param("id").to_owned();
    let (service, _) = form::read(call).await?;
    match service.operations.stop(&id, &view.viewer.name).await? {
        Some(operation) => {
            view.viewer.caller.note(|deed| {
                deed.action = "operations.stop".to_owned();
                deed.queue = operation.queue().map(str::to_owned);
            });
            flash::see(&format!("../{}", operation.id), "stopping", &[])
        }
        None => Err(Problem::new(
            &NO_OPERATION,
            format!("no operation '{}' is known", excerpt(&id, 40)),
        )),
    }
}
