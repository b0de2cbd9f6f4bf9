//! `GET /v1/tasks`, `/v1/tasks/{id}`, `POST /v1/find`: looking at tasks.

use std::time::Duration;

use axum::http::StatusCode;
use gristmill::port::observed::StoreEvent;
use gristmill::port::{
    Became, Ending, KeyStanding, ListRequest, Order, Page, SettleAnswer, StandingPlace, TaskFilter,
};
use gristmill::{Task, TaskId, TaskState, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::narrow::Narrow;
use super::now;
use crate::access::{Caller, Scope};
use crate::call::{self, Call};
use crate::limits::{FIND_KEYS, PAGE, PAGE_BYTES};
use crate::message::fields::{from_text, id, queue, span, text};
use crate::message::task::{ResultOut, TaskOut};
use crate::problem::{Answer, NO_TASK, Problem};
use crate::service::Service;

/// Which tasks are meant.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilterIn {
    pub(crate) queue: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    queue: Option<String>,
    state: Option<String>,
    key: Option<String>,
    group: Option<String>,
    source: Option<String>,
    error: Option<String>,
    payload: Option<String>,
    since: Option<String>,
    order: Option<String>,
    cursor: Option<String>,
    #[serde(default, deserialize_with = "from_text")]
    limit: Option<usize>,
}

impl FilterIn {
    /// The filter. Ready and delayed are as of now.
    pub(crate) fn meant(self) -> Answer<TaskFilter> {
        let short =
            |field: &str, said: Option<String>| said.map(|said| text(field, said, 512)).transpose();
        let every = TaskFilter::default();
        let standing = match self.state.as_deref() {
            None => every,
            Some("ready") => every.ready(now()),
            Some("delayed") => every.delayed(now()),
            Some("blocked") => every.blocked(),
            Some(name) => match name.parse::<TaskState>() {
                Ok(state) => TaskFilter { state: Some(state), ..every },
                Err(_) => {
                    let why = "use ready, delayed, blocked, pending, processing, failed or done";
                    return Err(Problem::field("state", why));
                }
            },
        };
        Ok(TaskFilter {
            queue: self.queue.map(|name| queue("queue", &name)).transpose()?,
            key: short("key", self.key)?,
            group: short("group", self.group)?,
            source: short("source", self.source)?,
            error_contains: short("error", self.error)?,
            ..standing
        })
    }
}

/// A point in time: an instant, or a duration before now.
pub(crate) fn since(text: &str) -> Answer<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    match span("since", text) {
        Ok(back) => Ok(now().before(back)),
        Err(_) => {
            let why = "write a time like 2026-11-15T08:30:00Z, or how long ago like 1h";
            Err(Problem::field("since", why))
        }
    }
}

pub(crate) async fn list(call: Call) -> Answer {
    let query: ListQuery = call.query()?;
    let Call { service, caller, .. } = call;
    let since = query.since.as_deref().map(since).transpose()?;
    let most = service.store.limits().page;
    let limit = query.limit.unwrap_or(PAGE);
    if limit == 0 || limit > most {
        return Err(Problem::field("limit", format!("a page has from 1 to {most} tasks")));
    }
    let order = match query.order.as_deref() {
        None | Some("newest") => Order::Newest,
        Some("oldest") => Order::Oldest,
        Some(_) => return Err(Problem::field("order", "use newest or oldest")),
    };
    let after = query.cursor.as_deref().map(|cursor| id("cursor", cursor)).transpose()?;
    let filter = FilterIn {
        queue: query.queue,
        state: query.state,
        key: query.key,
        group: query.group,
        source: query.source,
        error: query.error,
    };
    let mut filter = filter.meant()?;
    if filter.queue.is_none() {
        filter.queue = caller.only().cloned();
    }
    if let Some(queue) = &filter.queue {
        caller.expect_for(Scope::Read, queue)?;
        service.known.expect(&service, queue).await?;
    }
    let request = ListRequest { filter, order, after, limit };
    let payload = query.payload.map(|said| text("payload", said, 512)).transpose()?;
    let narrow = Narrow { since, shape: None, payload: payload.as_deref(), looks: LOOKS };
    let page = page(&service, &caller, request, narrow).await?;
    let queues = service.known.queues(&service).await?;
    let now = now();
    let tasks: Vec<_> = page.tasks.iter().map(|task| TaskOut::of(task, &queues, now)).collect();
    let next = page.next.map(|next| next.to_string());
    call::json(StatusCode::OK, &PageOut { tasks, next, looked: page.looked })
}

/// A page of tasks. A struct: on the way through a value, payloads would change their
/// spelling.
#[derive(Debug, Serialize)]
struct PageOut<'a> {
    tasks: Vec<TaskOut<'a>>,
    next: Option<String>,
    looked: u64,
}

/// How long a page may be looked for.
const LOOKS: Duration = Duration::from_secs(2);

/// Tasks that are read at a time where few of them may do.
const CLOSER: usize = 100;

/// A page, filled as far as a bounded look goes. It may be short, even empty, and
/// still have a next one.
pub(crate) async fn page(
    service: &Service,
    caller: &Caller,
    mut request: ListRequest,
    narrow: Narrow<'_>,
) -> Answer<Page> {
    let limit = request.limit;
    let (since, closer) = (narrow.since, narrow.looks_closer());
    let until = Instant::now() + narrow.looks;
    let queues = service.known.queues(service).await?;
    let (mut tasks, mut bytes, mut looked) = (Vec::new(), 0, 0);
    loop {
        request.limit = if closer { CLOSER } else { limit - tasks.len() };
        let page = service.store.list(request.clone()).await?;
        looked += page.looked;
        let mut next = page.next;
        for task in page.tasks {
            if let Some(since) = since
                && task.created_at < since
            {
                if request.order == Order::Newest {
                    // Ids rise with time: nothing younger comes behind it.
                    next = None;
                    break;
                }
                continue;
            }
            if caller.sees(&task) && narrow.fits(&task, &queues) {
                bytes += task.payload.bytes.len();
                let id = task.id;
                tasks.push(task);
                if bytes >= PAGE_BYTES || (closer && tasks.len() == limit) {
                    return Ok(Page { tasks, next: Some(id), looked });
                }
            }
        }
        request.after = next;
        if next.is_none() || tasks.len() == limit || Instant::now() >= until {
            return Ok(Page { tasks, next, looked });
        }
    }
}

/// How often a task is looked at whose end nobody tells of.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GetQuery {
    wait: Option<String>,
}

pub(crate) async fn get(call: Call) -> Answer {
    let query: GetQuery = call.query()?;
    let id = id("id", call.param("id"))?;
    let Call { service, caller, .. } = call;
    let wait = query.wait.map(|wait| span("wait", &wait)).transpose()?.unwrap_or_default();
    let most = service.store.limits().wait;
    if wait > most {
        return Err(Problem::field("wait", format!("one call waits at most {}s", most.as_secs())));
    }
    let task = service.store.get(id).await?;
    let Some(task) = task.filter(|task| caller.sees(task)) else {
        // Of one that does not stand nobody can say whose it was.
        if !caller.is_limited()
            && let Some(ending) = known(&service, id).await?
        {
            return gone(id, &ending, None);
        }
        return Err(Problem::new(&NO_TASK, format!("no task {id} stands")).at("id"));
    };
    if wait.is_zero() || is_over(&task) {
        return shown(&service, &task).await;
    }
    let _place = service.waiter()?;
    let until = Instant::now() + wait;
    // Listened to before it is looked at again, so that no end is missed in between.
    let mut events = service.mill.watch();
    let mut ended = None;
    loop {
        let mark = service.store.mark();
        let task = service.store.get(id).await?;
        match task {
            // It stood when the wait began, so this is how it ended.
            None => {
                let ending = known(&service, id).await?.unwrap_or(Ending::NotKnown);
                return gone(id, &ending, ended);
            }
            Some(task) if is_over(&task) || Instant::now() >= until || service.is_stopping() => {
                return shown(&service, &task).await;
            }
            Some(_) => {}
        }
        // Another process may end it, of which nothing is heard here unless somebody
        // wants its end.
        let look = until.saturating_duration_since(Instant::now()).min(LOOK);
        let told = service.store.wait_ended(mark, look);
        tokio::pin!(told);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(StoreEvent::Settled { id: settled, answer }) if settled == id => {
                        ended = outcome(&answer).or(ended);
                        break;
                    }
                    Ok(_) => {}
                    Err(_) => break,
                },
                told = &mut told => {
                    told?;
                    break;
                }
                () = service.stops() => break,
            }
        }
    }
}

/// How a task ended that does not stand any more, where that is kept.
async fn known(service: &Service, id: TaskId) -> Answer<Option<Ending>> {
    let ending = service.store.endings(&[id]).await?.pop();
    Ok(ending.filter(|ending| !matches!(ending, Ending::NotKnown | Ending::Open { .. })))
}

/// A task that does not stand any more, with what came of it.
#[derive(Debug, Serialize)]
struct GoneOut<'a> {
    id: String,
    state: &'static str,
    outcome: Option<&'static str>,
    #[serde(flatten)]
    returned: Option<ResultOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

fn gone(id: TaskId, ending: &Ending, heard: Option<&'static str>) -> Answer {
    let kept = (*ending != Ending::NotKnown).then(|| ending.as_str());
    let gone = GoneOut {
        id: id.to_string(),
        state: "gone",
        outcome: kept.or(heard),
        returned: ending.value().map(ResultOut::of),
        error: ending.error(),
    };
    call::json(StatusCode::OK, &gone)
}

/// Whether nothing more happens to it by itself.
fn is_over(task: &Task) -> bool {
    matches!(task.state, TaskState::Failed | TaskState::Done)
}

fn outcome(answer: &SettleAnswer) -> Option<&'static str> {
    match answer {
        SettleAnswer::Recorded { became: Became::Done, .. } => Some("done"),
        SettleAnswer::Recorded { became: Became::Cancelled, .. } => Some("cancelled"),
        _ => None,
    }
}

async fn shown(service: &Service, task: &Task) -> Answer {
    let queues = service.known.queues(service).await?;
    let ending = match task.state {
        TaskState::Done => known(service, task.id).await?,
        _ => None,
    };
    let result = ending.as_ref().and_then(Ending::value);
    call::json(StatusCode::OK, &TaskOut::of(task, &queues, now()).with_result(result))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindIn {
    queue: String,
    keys: Vec<String>,
}

#[derive(Debug, Serialize)]
struct StandingOut {
    key: String,
    id: String,
    place: &'static str,
    state: &'static str,
}

impl From<KeyStanding> for StandingOut {
    fn from(standing: KeyStanding) -> Self {
        StandingOut {
            key: standing.key,
            id: standing.id.to_string(),
            place: match standing.place {
                StandingPlace::Waiting => "waiting",
                StandingPlace::InFlight => "in_flight",
                StandingPlace::Failed => "failed",
            },
            state: standing.state.as_str(),
        }
    }
}

pub(crate) async fn find(call: Call) -> Answer {
    let caller = call.caller.clone();
    let (service, asked) = call.json::<FindIn>().await?;
    let queue = queue("queue", &asked.queue)?;
    caller.expect_for(Scope::Read, &queue)?;
    if asked.keys.len() > FIND_KEYS {
        let why = format!("{} keys and {FIND_KEYS} are allowed in a call", asked.keys.len());
        return Err(Problem::field("keys", why));
    }
    service.known.expect(&service, &queue).await?;
    let found = service.store.find(&queue, &asked.keys).await?;
    let standing: Vec<StandingOut> = found.into_iter().map(StandingOut::from).collect();
    call::json(StatusCode::OK, &json!({ "standing": standing }))
}
