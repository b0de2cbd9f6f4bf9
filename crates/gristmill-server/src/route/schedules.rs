//! `/v1/schedules`: what fires when; pausing, resuming, firing and removing.

use axum::http::StatusCode;
use gristmill::port::name::did_you_mean;
use gristmill::port::{FireAnswer, NewTask, Schedule, ScheduleDeclaration, ScheduleName};
use serde_json::json;

use super::now;
use crate::access::{Caller, Scope};
use crate::call::{self, Call};
use crate::message::fields::by;
use crate::message::queue::ByIn;
use crate::message::schedule::{FiredOut, ScheduleIn, ScheduleOut};
use crate::problem::{Answer, FORBIDDEN, NO_SCHEDULE, OVERLAPS, Problem};
use crate::service::Service;

pub(crate) async fn list(call: Call) -> Answer {
    let (schedules, now) = (call.service.store.schedules().await?, now());
    let theirs = schedules.iter().filter(|known| call.caller.reaches(&known.declared.queue));
    let all: Vec<_> = theirs.map(|schedule| ScheduleOut::of(schedule, now)).collect();
    call::json(StatusCode::OK, &all)
}

fn named(call: &Call) -> Answer<ScheduleName> {
    let name = ScheduleName::new(call.param("schedule"));
    name.map_err(|error| Problem::field("schedule", error.to_string()))
}

fn unknown<'a>(name: &ScheduleName, known: impl IntoIterator<Item = &'a Schedule>) -> Box<Problem> {
    let names = known.into_iter().map(|schedule| schedule.declared.name.as_str());
    let near = did_you_mean(name.as_str(), names);
    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    Problem::new(&NO_SCHEDULE, format!("there is no schedule '{name}'{near}")).at("schedule")
}

/// The schedule, if its queue is the caller's.
async fn found(service: &Service, caller: &Caller, name: &ScheduleName) -> Answer<Schedule> {
    let mut schedules = service.store.schedules().await?;
    schedules.retain(|known| caller.reaches(&known.declared.queue));
    let found = schedules.iter().find(|schedule| schedule.declared.name == *name);
    let found = found.cloned().ok_or_else(|| unknown(name, &schedules))?;
    caller.note(|deed| deed.queue = Some(found.declared.queue.to_string()));
    Ok(found)
}

pub(crate) async fn get(call: Call) -> Answer {
    let name = named(&call)?;
    let schedule = found(&call.service, &call.caller, &name).await?;
    call::json(StatusCode::OK, &ScheduleOut::of(&schedule, now()))
}

/// Says that a schedule exists, and how it is from now on.
pub(crate) async fn declare(call: Call) -> Answer {
    let name = named(&call)?;
    let caller = call.caller.clone();
    let (service, asked) = call.json::<ScheduleIn>().await?;
    let known = service.store.schedules().await?;
    let standing = known.iter().find(|schedule| schedule.declared.name == name);
    if standing.is_some_and(|standing| !caller.reaches(&standing.declared.queue)) {
        let why = format!("the name '{name}' is taken by a schedule that is not yours");
        return Err(Problem::new(&FORBIDDEN, why).at("schedule"));
    }
    let status = if standing.is_none() { StatusCode::CREATED } else { StatusCode::OK };
    keep(&service, &caller, asked.meant(name, None)?, status).await
}

/// Changes what is said of a schedule.
pub(crate) async fn change(call: Call) -> Answer {
    let name = named(&call)?;
    let caller = call.caller.clone();
    let (service, asked) = call.json::<ScheduleIn>().await?;
    let standing = found(&service, &caller, &name).await?.declared;
    keep(&service, &caller, asked.meant(name, Some(standing))?, StatusCode::OK).await
}

async fn keep(
    service: &Service,
    caller: &Caller,
    mut declared: ScheduleDeclaration,
    status: StatusCode,
) -> Answer {
    caller.expect_for(Scope::Admin, &declared.queue)?;
    caller.note(|deed| deed.queue = Some(declared.queue.to_string()));
    let queues = service.known.expect(service, &declared.queue).await?;
    if let Some(payload) = declared.payload.take() {
        // Told now, not when it fires at night.
        let task = NewTask::new(payload);
        if let Some(refusal) = service.store.limits().refuse(&task) {
            return Err(Problem::refused(&refusal));
        }
        let fitted = queues.fit(&declared.queue, task).map_err(|why| Problem::refused(&why))?;
        declared.payload = Some(fitted.payload);
    }
    let schedule = service.store.declare_schedule(declared).await?;
    call::json(status, &ScheduleOut::of(&schedule, now()))
}

pub(crate) async fn remove(call: Call) -> Answer {
    let name = named(&call)?;
    found(&call.service, &call.caller, &name).await?;
    if !call.service.store.remove_schedule(&name).await? {
        return Err(unknown(&name, &[]));
    }
    call::json(StatusCode::OK, &json!({ "schedule": name.as_str(), "removed": true }))
}

pub(crate) async fn pause(call: Call) -> Answer {
    set_paused(call, true).await
}

pub(crate) async fn resume(call: Call) -> Answer {
    set_paused(call, false).await
}

async fn set_paused(call: Call, paused: bool) -> Answer {
    let name = named(&call)?;
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<ByIn>().await?;
    let who = by(&caller, asked.by)?;
    found(&service, &caller, &name).await?;
    service.store.pause_schedule(&name, paused, &who).await?;
    let schedule = found(&service, &caller, &name).await?;
    call::json(StatusCode::OK, &ScheduleOut::of(&schedule, now()))
}

pub(crate) async fn fire(call: Call) -> Answer {
    let name = named(&call)?;
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<ByIn>().await?;
    by(&caller, asked.by)?;
    found(&service, &caller, &name).await?;
    match service.mill.fire_schedule(name.as_str()).await? {
        FireAnswer::Overlapped(id) => {
            let why = format!("task {id} of the fire before still stands");
            Err(Problem::new(&OVERLAPS, why).at("schedule"))
        }
        FireAnswer::Unknown => Err(unknown(&name, &[])),
        answer => call::json(StatusCode::OK, &FiredOut::of(name.as_str(), answer)),
    }
}
