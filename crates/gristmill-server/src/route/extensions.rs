//! `POST /v1/extensions` and `/v1/claims/{token}/extend`: more time under leases.

use axum::http::StatusCode;
use gristmill::StoreError;
use gristmill::port::{ExtendAnswer, Extension};

use super::now;
use crate::access::{Caller, Scope};
use crate::call::{self, Call};
use crate::leased::is_foreign;
use crate::message::claim::{ExtendIn, ExtensionIn, ExtensionOut};
use crate::message::fields::queue;
use crate::problem::Answer;
use crate::service::Service;

pub(crate) async fn extend_all(call: Call) -> Answer {
    let caller = call.caller.clone();
    let (service, asked) = call.json::<Vec<ExtensionIn>>().await?;
    for (at, one) in asked.iter().enumerate() {
        let queue =
            queue("queue", &one.queue).and_then(|queue| caller.expect_for(Scope::Work, &queue));
        queue.map_err(|problem| problem.within(&format!("[{at}]")))?;
    }
    let answers = extend(&service, &caller, ExtensionIn::all(asked)?).await?;
    call::json(StatusCode::OK, &answers)
}

pub(crate) async fn extend_one(call: Call) -> Answer {
    let token = call.param("token").to_owned();
    let caller = call.caller.clone();
    let (service, asked) = call.json::<ExtendIn>().await?;
    let answers = extend(&service, &caller, vec![asked.meant(&token)?]).await?;
    call::json(StatusCode::OK, &answers.first())
}

async fn extend(
    service: &Service,
    caller: &Caller,
    extensions: Vec<Extension>,
) -> Answer<Vec<ExtensionOut>> {
    // Before the store is asked, so that nobody is told of a later end than it has.
    let now = now();
    let answers = prolonged(service, caller, &extensions).await?;
    let each = extensions.iter().zip(answers);
    Ok(each.map(|(extension, answer)| ExtensionOut::of(extension, answer, now)).collect())
}

/// Prolongs those that are the caller's.
pub(crate) async fn prolonged(
    service: &Service,
    caller: &Caller,
    extensions: &[Extension],
) -> Result<Vec<ExtendAnswer>, StoreError> {
    let mut foreign = Vec::with_capacity(extensions.len());
    for extension in extensions {
        foreign.push(is_foreign(service, caller, extension.token).await?);
    }
    let ours = extensions.iter().zip(&foreign).filter(|(_, foreign)| !**foreign);
    let ours: Vec<Extension> = ours.map(|(extension, _)| extension.clone()).collect();
    let answers = if ours.is_empty() { Vec::new() } else { service.store.extend(ours).await? };
    let mut answers = answers.into_iter();
    let each = foreign.into_iter().map(|foreign| {
        // As if there were no such lease.
        let answer = if foreign { None } else { answers.next() };
        answer.unwrap_or(ExtendAnswer::LeaseLost)
    });
    Ok(each.collect())
}
