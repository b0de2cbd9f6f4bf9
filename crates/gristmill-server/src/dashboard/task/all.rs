//! Doing something to every task that matches: first how many there are, then an
//! operation that goes on by itself.

use std::time::{Duration, Instant};

use gristmill::port::{Action, ListRequest, Order, TaskFilter};
use gristmill::{Task, TaskState, error_shape};
use maud::html;

use super::act::{action, note};
use super::filter::{Asked, Meant};
use crate::call::Call;
use crate::dashboard::layout::{self, Frame, Section};
use crate::dashboard::view::View;
use crate::dashboard::words::{counted, number, span};
use crate::dashboard::{flash, form};
use crate::operation::{NotBegun, OPEN_MAX};
use crate::problem::{Answer, Problem, TOO_MANY_OPERATIONS};
use crate::service::Service;

/// How long is counted, where no kept number says how many there are.
const COUNTS: Duration = Duration::from_millis(50);

/// How many match.
pub(crate) struct Count {
    pub(crate) n: u64,
    /// Whether all were looked at.
    pub(crate) whole: bool,
}

impl Count {
    pub(crate) fn words(&self) -> String {
        if self.whole {
            counted(self.n, "task")
        } else {
            format!("at least {}", counted(self.n, "task"))
        }
    }
}

/// The filter of an operation, and the shape of the errors it is about.
fn meant(asked: &Asked, action: Action) -> Answer<(TaskFilter, Option<String>)> {
    if !asked.can_be_all() {
        let why = "an operation is about pending, processing or failed tasks, whenever they \
                   were put and whatever is in them: ready and delayed change by themselves";
        return Err(Problem::field("state", why));
    }
    let Meant { mut filter, shape, .. } = asked.meant()?;
    if let Some(state) = filter.state.filter(|state| !action.applies_to(*state)) {
        let why = format!("{} does not apply to {state} tasks", action.as_str());
        return Err(Problem::field("state", why));
    }
    if filter.state.is_none() && action.applies_to(TaskState::Failed) {
        filter.state = Some(TaskState::Failed);
    }
    Ok((filter, shape))
}

/// Counts: by the numbers that are kept where they say it, else by looking, for a while.
async fn count(
    service: &Service,
    asked: &Asked,
    filter: &TaskFilter,
    shape: Option<&str>,
    action: Action,
) -> Answer<Count> {
    let stats = service.sampled.stats(service).await?;
    if let Some(total) = asked.counted(&stats) {
        let queue = filter.queue.as_ref();
        let meant = stats.iter().filter(|one| queue.is_none_or(|queue| *queue == one.queue));
        let n = match filter.state {
            Some(TaskState::Failed) => meant.map(|one| one.failed).sum(),
            Some(_) => total,
            None => meant.map(|one| one.pending() + one.processing).sum(),
        };
        return Ok(Count { n, whole: true });
    }
    let limit = service.store.limits().page;
    let mut request =
        ListRequest { filter: filter.clone(), order: Order::Newest, after: None, limit };
    let (began, mut n) = (Instant::now(), 0);
    let fits = |task: &Task| {
        action.applies_to(task.state)
            && shape.is_none_or(|shape| {
                task.error.as_deref().is_some_and(|error| error_shape(error) == shape)
            })
    };
    loop {
        let page = service.store.list(request.clone()).await?;
        n += page.tasks.iter().filter(|task| fits(task)).count() as u64;
        request.after = page.next;
        if page.next.is_none() || began.elapsed() > COUNTS {
            return Ok(Count { n, whole: page.next.is_none() });
        }
    }
}

const fn verb(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Retry => ("Retry", "They run again, as if put anew."),
        Action::RetryFresh => {
            ("Retry afresh", "They run again, and what their handlers kept is forgotten.")
        }
        Action::Resolve => ("Resolve", "They leave the failed list: somebody dealt with them."),
        Action::Discard => ("Discard", "They are deleted and do not come back."),
        Action::Cancel => ("Cancel", "Waiting ones are deleted; running ones are asked to stop."),
    }
}

/// `GET /tasks/all`: what would be done, and to how many.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let (asked, action) = (Asked::read(&view.query), action(&view.query)?);
    let (filter, shape) = meant(&asked, action)?;
    if let Some(queue) = &filter.queue {
        service.known.expect(&service, queue).await?;
    }
    let began = Instant::now();
    let count = count(&service, &asked, &filter, shape.as_deref(), action).await?;
    let (words, what) = verb(action);
    let body = html! {
        p.trail { a href=(view.href_with("tasks", &asked.query())) { "Tasks" } }
        h1 { (words) " all that match" }
        section.card {
            dl.facts {
                @for (name, value) in asked.words() {
                    dt { (name) } dd { code { (value) } }
                }
                @if asked.words().is_empty() { dt { "filter" } dd { "none: every queue" } }
                dt { "matching now" }
                dd {
                    strong { (count.words()) }
                    @if !count.whole { " (counted for " (span(began.elapsed())) ")" }
                }
            }
            p { (what) " What comes to match later is left alone. It is done step by step, can be \
                 stopped, and goes on when this page is closed." }
            @if count.n == 0 && count.whole {
                p { strong { "There is nothing to do." } }
            } @else if view.viewer.may_act {
                form.stack method="post" action=(view.href("tasks/all")) {
                    @for (name, value) in asked.pairs() {
                        input type="hidden" name=(name) value=(value);
                    }
                    input type="hidden" name="expected" value=(count.n);
                    label { span { "Why (a note that stays with each task)" }
                        input name="note" maxlength="4096" autocomplete="off"; }
                    div.buttons {
                        button.grave[matches!(action, Action::Discard | Action::Cancel)].main
                            name="action" value=(action.as_str()) {
                            (words) " " @if count.whole { (number(count.n)) } @else { "all" }
                        }
                        a href=(view.href_with("tasks", &asked.query())) { "Leave it" }
                    }
                }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Tasks, words).still(), &body))
}

/// `POST /tasks/all`: begins it.
pub(crate) async fn begin(call: Call, view: View) -> Answer {
    let (service, fields) = form::read(call).await?;
    let (asked, action) = (Asked::read(&fields), action(&fields)?);
    let (filter, shape) = meant(&asked, action)?;
    if let Some(queue) = &filter.queue {
        service.known.expect(&service, queue).await?;
    }
    let expected = fields.number("expected").unwrap_or_default();
    let (by, note) = (view.viewer.name.clone(), note(&fields)?);
    let begun = service.operations.begin(action, &filter, shape, by, note).await;
    match begun {
        Ok(operation) => {
            view.viewer.caller.note(|deed| {
                deed.action = format!("tasks.{}", action.as_str());
                deed.target = Some(operation.id.clone());
                deed.queue = operation.queue().map(str::to_owned);
                deed.note.clone_from(&operation.note);
            });
            let place = format!("../operations/{}", operation.id);
            flash::see(&place, "begun", &[("of", expected)])
        }
        Err(NotBegun::Store(error)) => Err(error.into()),
        Err(NotBegun::TooMany) => {
            let why = format!("{OPEN_MAX} operations are not over yet");
            Err(Problem::new(&TOO_MANY_OPERATIONS, why))
        }
    }
}
