//! `/v1/stats`, `/v1/minutes`, `/v1/workers`: numbers, and who works.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use gristmill::port::Minute;
use gristmill::port::policy::keeping;
use gristmill::port::stats::MINUTES_KEPT;
use gristmill::{QueueName, Timestamp};
use gristmill_contract::duration;
use gristmill_text::ControlPlane;
use serde::Deserialize;
use serde_json::json;

use crate::access::{Caller, Scope};
use crate::call::{self, Call};
use crate::message::fields::{queue, span};
use crate::message::stats::{MinuteOut, StatsOut};
use crate::message::worker::WorkerOut;
use crate::problem::{Answer, Problem};
use crate::service::Service;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatsQuery {
    queue: Option<String>,
}

pub(crate) async fn stats(call: Call) -> Answer {
    let query: StatsQuery = call.query()?;
    let Call { service, caller, .. } = call;
    let wanted = query.queue.map(|name| queue("queue", &name)).transpose()?;
    if let Some(queue) = &wanted {
        caller.expect_for(Scope::Read, queue)?;
        service.known.expect(&service, queue).await?;
    }
    // Asked of the store itself: who put a moment ago looks for what was put.
    let stats = service.store.stats().await?;
    service.sampled.note(&stats);
    let theirs = stats.iter().filter(|one| caller.reaches(&one.queue));
    let meant = theirs.filter(|one| wanted.as_ref().is_none_or(|q| *q == one.queue));
    let shown = meant.map(|one| StatsOut::of(one, service.sampled.backlog(one)));
    call::json(StatusCode::OK, &shown.collect::<Vec<_>>())
}

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MinutesQuery {
    queue: Option<String>,
    back: Option<String>,
    step: Option<String>,
}

/// The longest of which the numbers are added up.
const STEP_MAX: Duration = Duration::from_secs(24 * 3600);
/// The most steps of an answer: a week of minutes.
const STEPS_MAX: u64 = 7 * 24 * 60;

pub(crate) async fn minutes(call: Call) -> Answer {
    let query: MinutesQuery = call.query()?;
    let Call { service, caller, .. } = call;
    let wanted = query.queue.map(|name| queue("queue", &name)).transpose()?;
    if let Some(queue) = &wanted {
        caller.expect_for(Scope::Read, queue)?;
    }
    let back = query.back.map(|back| span("back", &back)).transpose()?;
    let back = back.unwrap_or(Duration::from_secs(3600));
    if back > MINUTES_KEPT {
        let kept = kept(&service).await?;
        if back > kept {
            let kept = duration::show(kept);
            return Err(Problem::field("back", format!("minutes are kept for {kept}")));
        }
    }
    let step = query.step.map(|step| span("step", &step)).transpose()?.unwrap_or(MINUTE);
    if !(MINUTE..=STEP_MAX).contains(&step) || step.as_secs() % 60 != 0 || step.subsec_nanos() > 0 {
        return Err(Problem::field("step", "a step is whole minutes, at most 1d"));
    }
    if back.as_secs() / step.as_secs() > STEPS_MAX {
        let why = format!("with this step there are over {STEPS_MAX} numbers: give a longer one");
        return Err(Problem::field("step", why));
    }
    let minutes = match &wanted {
        Some(queue) => {
            service.known.expect(&service, queue).await?;
            service.store.minutes(queue, back).await?
        }
        None => of_all(&service, &caller, back).await?,
    };
    let minutes: Vec<MinuteOut> = in_steps(minutes, step).iter().map(MinuteOut::of).collect();
    let queue = wanted.as_ref().map(QueueName::as_str);
    call::json(StatusCode::OK, &json!({ "queue": queue, "minutes": minutes }))
}

/// How far back minutes are kept in this store.
async fn kept(service: &Service) -> Answer<Duration> {
    let said = service.store.document(keeping::KIND, keeping::MINUTES).await?;
    Ok(keeping::minutes_kept(said.as_ref().map(|document| document.body.as_str())))
}

/// What happened in each step, by its first minute.
fn in_steps(minutes: Vec<Minute>, step: Duration) -> Vec<Minute> {
    let step = i64::try_from(step.as_micros()).unwrap_or(i64::MAX);
    let mut steps: Vec<Minute> = Vec::new();
    for minute in minutes {
        let at = minute.at.as_micros();
        let begin = Timestamp::from_micros(at - at.rem_euclid(step));
        match steps.last_mut().filter(|last| last.at == begin) {
            Some(last) => last.add(&minute),
            None => steps.push(Minute { at: begin, ..minute }),
        }
    }
    steps
}

/// The minutes of all queues that are the caller's, together.
async fn of_all(service: &Service, caller: &Caller, back: Duration) -> Answer<Vec<Minute>> {
    let mut sums: BTreeMap<Timestamp, Minute> = BTreeMap::new();
    let stats = service.sampled.stats(service).await?;
    for one in stats.iter().filter(|one| caller.reaches(&one.queue)) {
        for minute in service.store.minutes(&one.queue, back).await? {
            sums.entry(minute.at).or_insert_with(|| Minute::new(minute.at)).add(&minute);
        }
    }
    Ok(sums.into_values().collect())
}

pub(crate) async fn workers(call: Call) -> Answer {
    let caller = &call.caller;
    let mut workers = call.service.store.workers().await?;
    let mut claimants = call.service.sampled.claimants();
    if caller.is_limited() {
        for report in workers.iter_mut().map(|view| &mut view.report) {
            report.queues.retain(|queue| caller.reaches(queue));
            report.processors.retain(|p| p.queue.as_ref().is_some_and(|q| caller.reaches(q)));
        }
        workers.retain(|view| !view.report.queues.is_empty());
        claimants.iter_mut().for_each(|one| one.queues.retain(|queue| caller.reaches(queue)));
        claimants.retain(|one| !one.queues.is_empty());
    }
    let over_http = claimants.iter().map(WorkerOut::claiming);
    let all: Vec<_> = workers.iter().map(WorkerOut::of).chain(over_http).collect();
    call::json(StatusCode::OK, &all)
}
