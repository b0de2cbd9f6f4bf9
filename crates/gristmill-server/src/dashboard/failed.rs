//! Failed tasks by what went wrong: errors that differ in numbers, ids and quoted words
//! only are one line, with what can be done to all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::{Action, ListRequest, Note, Order, TaskFilter};
use gristmill::{QueueName, TaskId, TaskState, Timestamp, error_shape};
use maud::{Markup, html};

use super::fields::query;
use super::layout::{self, Frame, Section};
use super::view::View;
use super::words::{counted, excerpt, instant, number};
use crate::call::Call;
use crate::message::fields::queue;
use crate::problem::Answer;
use crate::service::Service;

/// How long failed tasks are looked through for one page, and how long that is good for.
const LOOKS: Duration = Duration::from_millis(60);
const FRESH: Duration = Duration::from_secs(3);
/// Most groups on the page, and most queues named in one.
const LISTED: usize = 100;
const QUEUES: usize = 5;
/// Hours in the picture of a group.
const HOURS: usize = 24;

/// Failed tasks of one shape.
#[derive(Debug, Clone)]
struct Group {
    shape: String,
    count: u64,
    /// When the first and the last of those that were looked at failed.
    first: Timestamp,
    last: Timestamp,
    newest: TaskId,
    queues: BTreeSet<QueueName>,
    /// What somebody noted last on one of them.
    note: Option<(Timestamp, Note)>,
    hours: [u64; HOURS],
}

/// What was found in one look.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    looked: u64,
    whole: bool,
}

/// A look, when it was taken, and at which queue.
type Look = (Instant, Option<QueueName>, Arc<Groups>);

/// The last look: a hundred who read the page are one.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Mutex<Option<Look>>);

impl Shapes {
    async fn of(
        &self,
        service: &Service,
        queue: Option<QueueName>,
        now: Timestamp,
    ) -> Answer<Arc<Groups>> {
        if let Some((at, known, groups)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && at.elapsed() < FRESH
            && *known == queue
        {
            return Ok(groups.clone());
        }
        let groups = Arc::new(look(service, queue.clone(), now).await?);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((Instant::now(), queue, groups.clone()));
        Ok(groups)
    }
}

/// Looks through failed tasks, the newest first, for a while.
async fn look(service: &Service, queue: Option<QueueName>, now: Timestamp) -> Answer<Groups> {
    let filter = TaskFilter { queue, state: Some(TaskState::Failed), ..TaskFilter::default() };
    let limit = service.store.limits().page;
    let mut request = ListRequest { filter, order: Order::Newest, after: None, limit };
    let mut found: HashMap<String, Group> = HashMap::new();
    let (began, mut looked) = (Instant::now(), 0);
    let whole = loop {
        let page = service.store.list(request.clone()).await?;
        for task in page.tasks {
            looked += 1;
            let shape = error_shape(task.error.as_deref().unwrap_or_default());
            let at = task.failed_at.unwrap_or(task.created_at);
            let group = found.entry(shape).or_insert_with_key(|shape| Group {
                shape: shape.clone(),
                count: 0,
                first: at,
                last: at,
                newest: task.id,
                queues: BTreeSet::new(),
                note: None,
                hours: [0; HOURS],
            });
            group.count += 1;
            group.first = group.first.min(at);
            if at > group.last {
                group.last = at;
                group.newest = task.id;
            }
            if let Some(note) = task.note
                && group.note.as_ref().is_none_or(|(noted, _)| at > *noted)
            {
                group.note = Some((at, note));
            }
            group.queues.insert(task.queue);
            let ago = usize::try_from(now.since(at).as_secs() / 3600).unwrap_or(HOURS);
            if let Some(hour) = HOURS.checked_sub(ago + 1).and_then(|at| group.hours.get_mut(at)) {
                *hour += 1;
            }
        }
        request.after = page.next;
        if page.next.is_none() || began.elapsed() > LOOKS {
            break page.next.is_none();
        }
    };
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.shape.cmp(&b.shape)));
    Ok(Groups { groups, looked, whole })
}

/// `GET /failed`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let asked = view.query.one("queue").map(|name| queue("queue", &name)).transpose()?;
    if let Some(queue) = &asked {
        service.known.expect(&service, queue).await?;
    }
    let stats = service.sampled.stats(&service).await?;
    let meant = stats.iter().filter(|one| asked.as_ref().is_none_or(|queue| *queue == one.queue));
    let all: u64 = meant.map(|one| one.failed).sum();
    let found = service.shapes.of(&service, asked.clone(), view.now).await?;
    let body = html! {
        h1 { "Failed" }
        p.intro {
            "Tasks that were given up and wait for a person, by what went wrong: numbers, ids and \
             quoted words are folded. The newest failure comes first."
        }
        form.filter method="get" action=(view.href("failed")) aria-label="Filter" {
            label { span { "Queue" }
                select name="queue" {
                    option value="" { "every queue" }
                    @for one in stats.iter() {
                        option value=(one.queue) selected[asked.as_ref() == Some(&one.queue)] {
                            (one.queue) " (" (number(one.failed)) ")"
                        }
                    }
                }
            }
            div.buttons { button { "Show" } }
        }
        @if found.groups.is_empty() {
            section.empty {
                h2 { "Nothing has failed" }
                p { "A task fails for good when its attempts are used up, or when its handler says so. \
                     It then waits here, and is never lost. By hand: " }
                pre { code { "gristmill failed\ngristmill failed --by-error" } }
            }
        } @else {
            p.scope { (scope(all, &found)) }
            ul.shapes {
                @for group in found.groups.iter().take(LISTED) {
                    (one(&view, group, asked.as_ref(), found.whole))
                }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Failed, "Failed"), &body))
}

fn scope(all: u64, found: &Groups) -> String {
    let groups = counted(found.groups.len() as u64, "kind");
    let shown = if found.groups.len() > LISTED {
        format!(", {LISTED} of them shown")
    } else {
        String::new()
    };
    if found.whole {
        format!("{} in all, of {groups} of error{shown}.", number(all.max(found.looked)))
    } else {
        format!(
            "{} in all; the newest {} were looked at: {groups} of error{shown}.",
            number(all.max(found.looked)),
            number(found.looked)
        )
    }
}

fn one(view: &View, group: &Group, queue: Option<&QueueName>, whole: bool) -> Markup {
    let name = queue.map(QueueName::as_str);
    let shape = Some(group.shape.as_str()).filter(|shape| !shape.is_empty());
    let asked = [("queue", name), ("state", Some("failed")), ("shape", shape)];
    let with = |action: Action| {
        let all = [("action", Some(action.as_str()))].into_iter().chain(asked);
        view.href_with("tasks/all", &query(all))
    };
    let more = group.queues.len().saturating_sub(QUEUES);
    html! {
        li {
            div {
            code.error { @if group.shape.is_empty() { "(no error was said)" } @else { (excerpt(&group.shape, 400)) } }
            p.more {
                "last " (instant(group.last, view.now)) " ("
                a href=(view.href(&format!("tasks/{}", group.newest))) { "#" (group.newest) } ")"
                @if group.count > 1 { ", first " (instant(group.first, view.now)) }
                " · "
                @for (at, queue) in group.queues.iter().take(QUEUES).enumerate() {
                    @if at > 0 { ", " } (queue)
                }
                @if more > 0 { " and " (more) " more" }
            }
            @if let Some((_, note)) = &group.note {
                p.more { "noted by " (excerpt(&note.by, 40)) ": " q { (excerpt(&note.text, 200)) } }
            }
            @if shape.is_some() {
                p.buttons {
                    a href=(view.href_with("tasks", &query(asked))) { "Its tasks" }
                    @if view.viewer.may_act {
                        a href=(with(Action::Retry)) { "Retry all…" }
                        a href=(with(Action::Resolve)) { "Resolve all…" }
                        a href=(with(Action::Discard)) { "Discard all…" }
                    }
                }
            }
            }
            div.much {
                span.many { @if !whole { "≥ " } (counted(group.count, "task")) }
                (picture(group))
            }
        }
    }
}

/// The last day, an hour a bar.
fn picture(group: &Group) -> Markup {
    let most = group.hours.iter().copied().max().unwrap_or_default();
    let within: u64 = group.hours.iter().sum();
    let words = format!("{} in the last 24 hours, at most {} in one", number(within), number(most));
    html! {
        svg.spark viewBox="0 0 144 18" width="144" height="18" role="img" aria-label=(words) {
            title { (words) }
            @for (at, n) in group.hours.iter().enumerate() {
                @let height = (n * 16).checked_div(most).unwrap_or_default().max(u64::from(*n > 0));
                rect.base x=(at * 6) y="17" width="5" height="1" {}
                @if *n > 0 { rect.failed x=(at * 6) y=(17 - height) width="5" height=(height) {} }
            }
        }
    }
}
