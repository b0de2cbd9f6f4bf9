//! `GET /v1/events`: what happens in the store through this process, as server-sent
//! events.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use gristmill::TaskId;
use gristmill::port::observed::StoreEvent;
use gristmill::port::{Became, SettleAnswer};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::Instant;

use crate::access::Caller;
use crate::call::Call;
use crate::problem::Answer;
use crate::service::Service;

/// A line now and then, so that a dead connection is noticed by both sides.
const ALIVE: Duration = Duration::from_secs(15);

pub(crate) async fn events(call: Call) -> Answer {
    let Call { service, caller, .. } = call;
    let place = service.listener()?;
    let events = service.mill.watch();
    let listener = Listener { service, theirs: Theirs::of(caller), events, _place: place };
    let stream =
        futures_util::stream::unfold((listener, true), |(mut listener, first)| async move {
            let text = if first {
                // Told at once that it is heard: events come from here on.
                "retry: 1000\n: listening\n\n".to_owned()
            } else {
                listener.next().await?
            };
            Some((Ok::<_, std::io::Error>(Bytes::from(text)), (listener, false)))
        });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Somebody who listens.
struct Listener {
    service: Arc<Service>,
    theirs: Theirs,
    events: broadcast::Receiver<StoreEvent>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// The next event as text; nothing when the service stops, or when the token that
    /// let the listener in is not taken any more.
    async fn next(&mut self) -> Option<String> {
        let quiet = Instant::now() + ALIVE;
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = tokio::time::sleep_until(quiet) => {
                    self.still_there().await?;
                    return Some(": alive\n\n".to_owned());
                }
                () = self.service.stops() => return None,
            };
            let (name, data) = match event {
                Ok(event) => match self.theirs.has(&event).then(|| told(event)).flatten() {
                    Some(told) => told,
                    None => continue,
                },
                // Too slow: what was missed is only counted, and can be looked at.
                Err(RecvError::Lagged(missed)) => ("lagged", json!({ "missed": missed })),
                Err(RecvError::Closed) => return None,
            };
            self.still_there().await?;
            return Some(format!("event: {name}\ndata: {data}\n\n"));
        }
    }

    async fn still_there(&self) -> Option<()> {
        self.service.door.still_takes(&self.theirs.caller).await.ok()
    }
}

/// Which events a listener may hear of.
struct Theirs {
    caller: Caller,
    /// Tasks of their queues that were claimed since they listen: an end tells no queue.
    claimed: HashSet<TaskId>,
    order: VecDeque<TaskId>,
}

/// Most claimed tasks that are remembered a listener.
const REMEMBERED: usize = 10_000;

impl Theirs {
    fn of(caller: Caller) -> Self {
        Theirs { caller, claimed: HashSet::new(), order: VecDeque::new() }
    }

    fn has(&mut self, event: &StoreEvent) -> bool {
        if !self.caller.is_limited() {
            return true;
        }
        match event {
            StoreEvent::Put { queue, .. } | StoreEvent::QueueChanged { queue } => {
                self.caller.reaches(queue)
            }
            StoreEvent::Claimed { queue, tasks, .. } => {
                let theirs = self.caller.reaches(queue);
                if theirs {
                    self.remember(tasks);
                }
                theirs
            }
            StoreEvent::Settled { id, .. } => self.claimed.contains(id),
            // Those are about no one queue.
            _ => false,
        }
    }

    fn remember(&mut self, tasks: &[TaskId]) {
        let fresh = tasks.iter().filter(|id| self.claimed.insert(**id));
        self.order.extend(fresh);
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.claimed.remove(&oldest);
            }
        }
    }
}

/// An event under its name. No payload, no error text and no token is in it.
fn told(event: StoreEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        StoreEvent::Put { queue, enqueued, duplicates, refused } => (
            "put",
            json!({
                "queue": queue.as_str(), "enqueued": enqueued, "duplicates": duplicates,
                "refused": refused,
            }),
        ),
        StoreEvent::Claimed { queue, worker, tasks } => {
            let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
            (
                "claimed",
                json!({ "queue": queue.as_str(), "worker": worker.as_str(), "tasks": tasks }),
            )
        }
        StoreEvent::Settled { id, answer } => {
            let (outcome, became) = match &answer {
                SettleAnswer::Recorded { became, .. } => ("recorded", Some(word(became))),
                SettleAnswer::AlreadyRecorded => ("already_recorded", None),
                SettleAnswer::Gone => ("gone", None),
                SettleAnswer::LeaseLost => ("lease_lost", None),
            };
            ("settled", json!({ "id": id.to_string(), "outcome": outcome, "became": became }))
        }
        StoreEvent::Operated { operation, moved } => (
            "operated",
            json!({ "action": operation.action.as_str(), "moved": moved, "by": operation.by }),
        ),
        StoreEvent::QueueChanged { queue } => ("queue", json!({ "queue": queue.as_str() })),
        StoreEvent::ScheduleChanged { schedule } => {
            ("schedule", json!({ "schedule": schedule.as_str() }))
        }
        StoreEvent::Swept { report } => ("swept", json!({ "reclaimed": report.reclaimed })),
        _ => return None,
    })
}

const fn word(became: &Became) -> &'static str {
    match became {
        Became::Done => "done",
        Became::Pending { .. } => "pending",
        Became::Failed => "failed",
        Became::Cancelled => "cancelled",
    }
}
