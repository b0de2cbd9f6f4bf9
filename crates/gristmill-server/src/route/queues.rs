//! `/v1/queues`: declare, change, pause, resume, reset, look.

use axum::http::StatusCode;
use gristmill::port::{Declaration, Origin};
use gristmill::{QueueName, StoreError};

use crate::call::{self, Call};
use crate::message::fields::by;
use crate::message::queue::{ByIn, QueueIn, QueueOut};
use crate::problem::{Answer, Problem};
use crate::service::Service;

pub(crate) async fn list(call: Call) -> Answer {
    let queues = call.service.store.queues().await?;
    let theirs = queues.iter().filter(|queue| call.caller.reaches(&queue.name));
    let queues: Vec<QueueOut> = theirs.map(QueueOut::of).collect();
    call::json(StatusCode::OK, &queues)
}

pub(crate) async fn get(call: Call) -> Answer {
    let queue = call.queue()?;
    shown(&call.service, &queue).await
}

async fn shown(service: &Service, queue: &QueueName) -> Answer {
    service.known.expect(service, queue).await?;
    let queues = service.store.queues().await?;
    let found = queues.iter().find(|known| known.name == *queue);
    let gone = || StoreError::UnknownQueue { name: queue.to_string(), suggestion: None };
    call::json(StatusCode::OK, &QueueOut::of(found.ok_or_else(gone)?))
}

/// What the store says of settings it cannot take.
fn wrong(error: StoreError) -> Box<Problem> {
    match error {
        StoreError::Invalid(why) => Problem::field("settings", why),
        other => other.into(),
    }
}

/// Says that the queue exists, with these settings; again is no harm.
pub(crate) async fn declare(call: Call) -> Answer {
    let name = call.queue()?;
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<QueueIn>().await?;
    let (settings, origin) = (asked.patch()?, Origin::Code);
    // A declaration is nobody's change, but what is said must be sayable.
    by(&caller, asked.by)?;
    let declaration = Declaration { name, number: None, settings, origin };
    let declared = service.store.declare_queue(declaration).await.map_err(wrong)?;
    service.known.forget();
    let status = if declared.created { StatusCode::CREATED } else { StatusCode::OK };
    call::json(status, &QueueOut::declared(&declared))
}

/// An operator's change, on top of earlier ones.
pub(crate) async fn change(call: Call) -> Answer {
    let queue = call.queue()?;
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<QueueIn>().await?;
    let patch = asked.patch()?;
    let who = by(&caller, asked.by)?;
    service.known.expect(&service, &queue).await?;
    let declared = service.store.override_queue(&queue, patch, &who).await.map_err(wrong)?;
    service.known.forget();
    call::json(StatusCode::OK, &QueueOut::of(&declared.queue))
}

pub(crate) async fn reset(call: Call) -> Answer {
    let queue = call.queue()?;
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<ByIn>().await?;
    let who = by(&caller, asked.by)?;
    service.known.expect(&service, &queue).await?;
    let declared = service.store.reset_queue(&queue, &who).await?;
    service.known.forget();
    call::json(StatusCode::OK, &QueueOut::of(&declared.queue))
}

pub(crate) async fn pause(call: Call) -> Answer {
    set_paused(call, true).await
}

pub(crate) async fn resume(call: Call) -> Answer {
    set_paused(call, false).await
}

async fn set_paused(call: Call, paused: bool) -> Answer {
    let queue = call.queue()?;
    let caller = call.caller.clone();
    let (service, asked) = call.json_or_default::<ByIn>().await?;
    let who = by(&caller, asked.by)?;
    service.known.expect(&service, &queue).await?;
    service.store.pause_queue(&queue, paused, &who).await?;
    shown(&service, &queue).await
}
