//! `/v1/stats`, `/v1/minutes`, `/v1/workers`: numbers, and who works.

use std::time::Duration;

use axum::http::StatusCode;
use gristmill::port::stats::MINUTES_KEPT;
use serde::Deserialize;
use serde_json::json;

use crate::call::{self, Call};
use crate::message::fields::{queue, span};
use crate::message::stats::{MinuteOut, StatsOut};
use crate::message::worker::WorkerOut;
use crate::problem::{Answer, Problem};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatsQuery {
    queue: Option<String>,
}

pub(crate) async fn stats(call: Call) -> Answer {
    let query: StatsQuery = call.query()?;
    let service = call.service;
    let wanted = query.queue.map(|name| queue("queue", &name)).transpose()?;
    if let Some(queue) = &wanted {
        service.known.expect(&service, queue).await?;
    }
    // Asked of the store itself: who put a moment ago looks for what was put.
    let stats = service.store.stats().await?;
    let meant = stats.iter().filter(|one| wanted.as_ref().is_none_or(|q| *q == one.queue));
    call::json(StatusCode::OK, &meant.map(StatsOut::of).collect::<Vec<_>>())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MinutesQuery {
    queue: String,
    back: Option<String>,
}

pub(crate) async fn minutes(call: Call) -> Answer {
    let query: MinutesQuery = call.query()?;
    let service = call.service;
    let queue = queue("queue", &query.queue)?;
    let back = query.back.map(|back| span("back", &back)).transpose()?;
    let back = back.unwrap_or(Duration::from_secs(3600));
    if back > MINUTES_KEPT {
        return Err(Problem::field("back", "minutes are kept for 24h"));
    }
    service.known.expect(&service, &queue).await?;
    let minutes = service.store.minutes(&queue, back).await?;
    let minutes: Vec<MinuteOut> = minutes.iter().map(MinuteOut::of).collect();
    call::json(StatusCode::OK, &json!({ "queue": queue.as_str(), "minutes": minutes }))
}

pub(crate) async fn workers(call: Call) -> Answer {
    let workers = call.service.store.workers().await?;
    let claimants = call.service.sampled.claimants();
    let over_http = claimants.iter().map(WorkerOut::claiming);
    let all: Vec<_> = workers.iter().map(WorkerOut::of).chain(over_http).collect();
    call::json(StatusCode::OK, &all)
}
