//! `GET /v1/events`: what happens in the store through this process, as server-sent
//! events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use gristmill::port::observed::StoreEvent;
use gristmill::port::{Became, SettleAnswer};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::call::Call;
use crate::problem::Answer;
use crate::service::Service;

/// A line now and then, so that a dead connection is noticed by both sides.
const ALIVE: Duration = Duration::from_secs(15);

pub(crate) async fn events(call: Call) -> Answer {
    let service = call.service;
    let place = service.listener()?;
    let events = service.mill.watch();
    let state = (service, events, place, true);
    let stream =
        futures_util::stream::unfold(state, |(service, mut events, place, first)| async move {
            let text = if first {
                // Told at once that it is heard: events come from here on.
                "retry: 1000\n: listening\n\n".to_owned()
            } else {
                next(&service, &mut events).await?
            };
            Some((Ok::<_, std::io::Error>(Bytes::from(text)), (service, events, place, false)))
        });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The next event as text; nothing when the service stops.
async fn next(
    service: &Arc<Service>,
    events: &mut broadcast::Receiver<StoreEvent>,
) -> Option<String> {
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = tokio::time::sleep(ALIVE) => return Some(": alive\n\n".to_owned()),
            () = service.stops() => return None,
        };
        let (name, data) = match event {
            Ok(event) => match told(event) {
                Some(told) => told,
                None => continue,
            },
            // Too slow: what was missed is only counted, and can be looked at.
            Err(RecvError::Lagged(missed)) => ("lagged", json!({ "missed": missed })),
            Err(RecvError::Closed) => return None,
        };
        return Some(format!("event: {name}\ndata: {data}\n\n"));
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
