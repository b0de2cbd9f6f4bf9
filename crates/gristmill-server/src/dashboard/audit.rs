//! Who did what by hand, from whatever surface: the audit log, the newest first.

use maud::{Markup, html};

use super::fields::query;
use super::layout::{self, Frame, Section};
use super::view::View;
use super::words::{counted, excerpt, instant, number};
use crate::audit::{Audit, AuditLine};
use crate::call::Call;
use crate::problem::Answer;
use crate::route::audit::{after, is_theirs};

/// Lines on a page.
const PAGE: usize = 100;

/// `GET /audit`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let Call { service, caller, .. } = call;
    let behind = after(view.query.one("after"))?;
    let is_first = behind.is_none();
    let mut lines = Audit::of(&service.mill).list(behind, PAGE).await?;
    let next = (lines.len() == PAGE).then(|| lines.last().map(|line| line.id.clone())).flatten();
    lines.retain(|line| is_theirs(&caller, line));
    let body = html! {
        h1 { "Audit" }
        p.intro {
            "What was done by hand: from these pages, over HTTP and on the command line. The last \
             comes first."
        }
        @if lines.is_empty() {
            section.empty {
                @if is_first {
                    h2 { "Nothing was done by hand" }
                    p { "A pause, a retry, a changed setting or a token stands here, with who did \
                         it and why. The same by hand:" }
                    pre { code { "gristmill audit" } }
                } @else { h2 { "Nothing is older" } }
            }
        } @else { (table(&view, &lines)) }
        nav.pages aria-label="Pages of the log" {
            @if !is_first { a href=(view.href("audit")) { "First page" } }
            @if let Some(next) = next {
                a href=(view.href_with("audit", &query([("after", Some(next.as_str()))]))) rel="next" { "Older" }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Audit, "Audit"), &body))
}

fn table(view: &View, lines: &[AuditLine]) -> Markup {
    html! {
        p.scope { (counted(lines.len() as u64, "line")) " shown." }
        div.wide tabindex="0" role="region" aria-label="The audit log" {
            table.rows {
                thead { tr {
                    th scope="col" { "What" } th scope="col" { "When" } th scope="col" { "Who" }
                    th scope="col" { "Of what" } th.n scope="col" { "Tasks" }
                    th scope="col" { "From" } th scope="col" { "Why" }
                } }
                tbody { @for line in lines { (one(view, line)) } }
            }
        }
    }
}

fn one(view: &View, line: &AuditLine) -> Markup {
    let deed = &line.deed;
    let at = line.at.parse().ok();
    html! {
        tr {
            th scope="row" { (excerpt(&deed.action, 40)) }
            td { @match at { Some(at) => { (instant(at, view.now)) } None => { (line.at) } } }
            td.text {
                @match (&deed.actor, &deed.by) {
                    (Some(actor), Some(by)) if actor != by => { (excerpt(by, 40)) " (" (excerpt(actor, 40)) ")" }
                    (Some(who), _) | (None, Some(who)) => { (excerpt(who, 40)) }
                    (None, None) => { span.zero { "–" } }
                }
            }
            td.text {
                @match (&deed.queue, &deed.target) {
                    (Some(queue), target) => {
                        a href=(view.href_with("tasks", &query([("queue", Some(queue.as_str()))]))) { (excerpt(queue, 60)) }
                        @if let Some(target) = target.as_ref().filter(|target| *target != queue) { " " (excerpt(target, 60)) }
                    }
                    (None, Some(target)) => { (excerpt(target, 60)) }
                    (None, None) => { span.zero { "–" } }
                }
            }
            td.n { @match deed.moved { Some(n) => { (number(n)) } None => { span.zero { "–" } } } }
            td { (excerpt(&deed.via, 20)) }
            td.text.long { @if let Some(note) = &deed.note { (excerpt(note, 140)) } }
        }
    }
}
