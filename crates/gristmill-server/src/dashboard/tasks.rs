//! The list of tasks: filters in the address, a page at a time, and what can be done to
//! those that are selected or to all that match.

use std::time::Duration;

use gristmill::port::{Action, ListRequest};
use gristmill::{QueueName, QueueStats, Task};
use maud::{Markup, html};

use super::layout::{self, Frame, Section};
use super::pill;
use super::task::filter::{Asked, STATES};
use super::task::payload;
use super::view::View;
use super::words::{countdown, counted, excerpt, instant, number};
use crate::call::Call;
use crate::known::Queues;
use crate::problem::Answer;
use crate::route::narrow::Narrow;
use crate::route::tasks::page as find;

/// How long a page may be looked for: what was not found by then is looked for on the
/// next one.
const LOOKS: Duration = Duration::from_millis(50);

/// What was found, and what is known of how much there is.
struct Found {
    tasks: Vec<Task>,
    /// Where the next page begins.
    next: Option<gristmill::TaskId>,
    /// Whether the look ended before the page was full: how many were looked at up to
    /// here, and of how many.
    so_far: Option<(u64, u64)>,
    /// How many match, where kept numbers say so.
    all: Option<u64>,
}

pub(crate) async fn page(call: Call, view: View) -> Answer {
    let (service, caller) = (call.service, call.caller);
    let asked = Asked::read(&view.query);
    let meant = asked.meant()?;
    let stats = service.sampled.stats(&service).await?;
    let queues = service.known.queues(&service).await?;
    let request = ListRequest {
        filter: meant.filter.clone(),
        order: meant.order,
        after: meant.after,
        limit: meant.limit,
    };
    let narrow = Narrow {
        since: meant.since,
        shape: meant.shape.as_deref(),
        payload: meant.payload.as_deref(),
        looks: LOOKS,
    };
    let page = find(&service, &caller, request, narrow).await?;
    let (all, among) = (asked.counted(&stats), asked.among(&stats));
    let looked = asked.looked().saturating_add(page.looked);
    let ended_early = page.next.is_some() && page.tasks.len() < meant.limit;
    let so_far = ended_early.then_some((looked.min(among), among));
    let found = Found { tasks: page.tasks, next: page.next, so_far, all };
    let names: Vec<&QueueName> = stats.iter().map(|one| &one.queue).collect();
    let body = html! {
        h1 { "Tasks" }
        (form(&view, &asked, &names))
        (list(&view, &asked, &found, &queues, &stats))
    };
    let frame = Frame::of(Section::Tasks, "Tasks");
    // A look through many is not taken again and again because somebody leaves it open.
    let frame = if so_far.is_some() { frame.still() } else { frame };
    Ok(layout::page(&view, &frame, &body))
}

/// The filters.
fn form(view: &View, asked: &Asked, queues: &[&QueueName]) -> Markup {
    let field = |name: &'static str, words: &'static str, hint: &'static str| {
        html! {
            label { span { (words) }
                input name=(name) value=(asked.said(name)) placeholder=(hint) autocomplete="off"
                    spellcheck="false" maxlength="512"; }
        }
    };
    let is = |name: &str, value: &str| asked.said(name) == value;
    html! {
        form.filter role="search" method="get" action=(view.href("tasks")) aria-label="Filter tasks" {
            label { span { "Queue" }
                select name="queue" {
                    option value="" { "every queue" }
                    @for name in queues {
                        option value=(name) selected[is("queue", name.as_str())] { (name) }
                    }
                    @if !asked.said("queue").is_empty()
                        && !queues.iter().any(|name| name.as_str() == asked.said("queue")) {
                        option value=(asked.said("queue")) selected { (asked.said("queue")) }
                    }
                }
            }
            label { span { "State" }
                select name="state" {
                    option value="" { "every state" }
                    @for state in STATES {
                        option value=(state) selected[is("state", state)] { (state) }
                    }
                }
            }
            (field("key", "Key", "exactly"))
            (field("error", "Error has", "a part of it"))
            (field("payload", "Payload has", "a part of it"))
            details.more open[asked.says_more()] {
                summary { "More" }
                div {
                    (field("group", "Group", "exactly"))
                    (field("source", "Source", "exactly"))
                    (field("shape", "Error’s shape", "numbers folded"))
                    (field("since", "Put within", "1h, 2d, or a time"))
                    (field("over", "Claimed more than", "times"))
                    label { span { "Order" }
                        select name="order" {
                            option value="" { "newest first" }
                            option value="oldest" selected[is("order", "oldest")] { "oldest first" }
                        }
                    }
                    label { span { "A page has" }
                        select name="limit" {
                            @for n in ["50", "100", "200", "500"] {
                                option value=(if n == "50" { "" } else { n }) selected[is("limit", n)] { (n) }
                            }
                        }
                    }
                }
            }
            div.buttons {
                button { "Filter" }
                @if asked.says_anything() { a href=(view.href("tasks")) { "Show all" } }
            }
        }
    }
}

fn list(
    view: &View,
    asked: &Asked,
    found: &Found,
    queues: &Queues,
    stats: &[QueueStats],
) -> Markup {
    let can = view.viewer.may_act && !found.tasks.is_empty();
    html! {
        @if found.tasks.is_empty() {
            (nothing(view, asked, found, stats))
        } @else {
            @if can {
                form method="post" action=(view.href("tasks/act")) data-select="" {
                    input type="hidden" name="asked" value=(asked.query());
                    (actions(view, asked))
                    (rows(view, found, queues, can))
                }
            } @else {
                (rows(view, found, queues, can))
            }
            (pages(view, asked, found))
        }
    }
}

fn rows(view: &View, found: &Found, queues: &Queues, can: bool) -> Markup {
    html! {
        p.scope { (scope(found)) }
        div.wide tabindex="0" role="region" aria-label="Tasks" {
            table.rows {
                thead {
                    tr {
                        @if can {
                            th.tick scope="col" {
                                input type="checkbox" data-does="all" hidden
                                    aria-label="Select every task on this page";
                            }
                        }
                        th scope="col" { "Task" }
                        th scope="col" { "Queue" }
                        th scope="col" { "State" }
                        th.less scope="col" { "Key" }
                        th scope="col" { "Error or payload" }
                        th.n.less scope="col" title="Attempts since it was put or sent back" { "Attempts" }
                        th.less scope="col" { "Put" }
                        th scope="col" { "Runs" }
                    }
                }
                tbody { @for task in &found.tasks { (line(view, task, queues, can)) } }
            }
        }
    }
}

/// How much is shown of how much there is.
fn scope(found: &Found) -> String {
    let shown = found.tasks.len() as u64;
    if let Some((looked, among)) = found.so_far {
        return format!(
            "{} shown. Looked at {} of {}.",
            counted(shown, "task"),
            number(looked),
            number(among)
        );
    }
    match (found.all, found.next) {
        (_, None) if found.all.is_none_or(|all| all <= shown) => {
            format!("{} shown: these are all from here on.", counted(shown, "task"))
        }
        (Some(all), _) => format!("{} in all, {} shown.", number(all.max(shown)), number(shown)),
        (None, _) => {
            format!("{} shown; more may follow on the next page.", counted(shown, "task"))
        }
    }
}

fn pages(view: &View, asked: &Asked, found: &Found) -> Markup {
    html! {
        nav.pages aria-label="Pages of tasks" {
            @if !asked.said("cursor").is_empty() {
                a href=(view.href_with("tasks", &asked.at(None))) { "First page" }
            }
            @match (found.next, found.so_far) {
                (Some(next), Some((looked, _))) => {
                    a href=(view.href_with("tasks", &asked.on(next, looked))) rel="next" { "Go on looking" }
                }
                (Some(next), None) => {
                    a href=(view.href_with("tasks", &asked.at(Some(next)))) rel="next" { "Next page" }
                }
                (None, _) => {}
            }
        }
    }
}

fn nothing(view: &View, asked: &Asked, found: &Found, stats: &[QueueStats]) -> Markup {
    html! {
        section.empty {
            @if let (Some(next), Some((looked, among))) = (found.next, found.so_far) {
                h2 { "Nothing found so far" }
                p { "Looked at " (number(looked)) " of " (counted(among, "task"))
                    ", and stopped to let others have a turn. "
                    a href=(view.href_with("tasks", &asked.on(next, looked))) rel="next" { "Go on looking" } }
            } @else if asked.says_anything() {
                h2 { "No task matches" }
                p { "Done tasks are deleted unless their queue keeps them ("
                    code { "keep_done" } "). "
                    a href=(view.href("tasks")) { "Show every task" } }
            } @else {
                h2 { "No task stands" }
                p { "Put one:" }
                pre { code {
                    "gristmill put " (stats.first().map_or("emails", |one| one.queue.as_str()))
                    " '{\"to\":\"ada@example.org\"}'" } }
            }
        }
    }
}

/// What can be done to those that are selected, or to all.
fn actions(view: &View, asked: &Asked) -> Markup {
    let state = asked.said("state");
    let fits = |action: Action| match state {
        "" => true,
        "failed" => action != Action::Cancel,
        "done" => false,
        _ => action == Action::Cancel,
    };
    let every = [
        (Action::Retry, "Retry", false),
        (Action::Resolve, "Resolve", false),
        (Action::Discard, "Discard", true),
        (Action::Cancel, "Cancel", true),
    ];
    html! {
        div.act role="group" aria-label="What to do" {
            span.chosen data-chosen="" aria-live="polite" { "With selected:" }
            input name="note" maxlength="4096" placeholder="Why (a note)" aria-label="A note";
            @for (action, words, grave) in every {
                @if fits(action) {
                    button.grave[grave] name="action" value=(action.as_str())
                        data-ask=[grave.then_some("It is deleted and does not come back.")] { (words) }
                }
            }
            @if asked.can_be_all() {
                span.all {
                    "With all that match: "
                    @for (action, words, _) in every {
                        @if fits(action) {
                            a href=(view.href_with("tasks/all", &asked.with_action(action))) { (words) "…" } " "
                        }
                    }
                }
            }
        }
    }
}

/// One task of a list.
pub(crate) fn line(view: &View, task: &Task, queues: &Queues, can: bool) -> Markup {
    let place = view.href(&format!("tasks/{}", task.id));
    html! {
        tr data-row=(place) {
            @if can {
                td.tick { input type="checkbox" name="ids" value=(task.id) aria-label=(format!("Select task {}", task.id)); }
            }
            th scope="row" { a href=(place) { "#" (task.id) } }
            td { (task.queue) }
            td { (pill::task(task, view.now)) }
            td.text.less { @if let Some(key) = &task.key { (excerpt(key, 40)) } @else { span.zero { "–" } } }
            td.text.long {
                @match &task.error {
                    Some(error) => { span.error { (excerpt(error, 140)) } }
                    None => { code { (excerpt(&payload::line(task, queues), 140)) } }
                }
            }
            td.n.less { (task.attempts) }
            td.less { (instant(task.created_at, view.now)) }
            td { (runs(task, view)) }
        }
    }
}

/// When it runs, ran, or failed.
fn runs(task: &Task, view: &View) -> Markup {
    match (&task.lease, task.failed_at, task.resolved_at) {
        (Some(lease), _, _) => html! {
            "lease ends " (countdown(lease.until, view.now))
        },
        (None, Some(failed), _) => html! { "failed " (instant(failed, view.now)) },
        (None, None, Some(done)) => html! { "ended " (instant(done, view.now)) },
        (None, None, None) => instant(task.run_at, view.now),
    }
}
