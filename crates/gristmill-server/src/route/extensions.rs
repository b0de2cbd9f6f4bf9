//! `POST /v1/extensions` and `/v1/claims/{token}/extend`: more time under leases.

use axum::http::StatusCode;
use gristmill::port::Extension;

use super::now;
use crate::call::{self, Call};
use crate::message::claim::{ExtendIn, ExtensionIn, ExtensionOut};
use crate::problem::Answer;
use crate::service::Service;

pub(crate) async fn extend_all(call: Call) -> Answer {
    let (service, asked) = call.json::<Vec<ExtensionIn>>().await?;
    let answers = extend(&service, ExtensionIn::all(asked)?).await?;
    call::json(StatusCode::OK, &answers)
}

pub(crate) async fn extend_one(call: Call) -> Answer {
    let token = call.param("token").to_owned();
    let (service, asked) = call.json::<ExtendIn>().await?;
    let answers = extend(&service, vec![asked.meant(&token)?]).await?;
    call::json(StatusCode::OK, &answers.first())
}

async fn extend(service: &Service, extensions: Vec<Extension>) -> Answer<Vec<ExtensionOut>> {
    if extensions.is_empty() {
        return Ok(Vec::new());
    }
    // Before the store is asked, so that nobody is told of a later end than it has.
    let now = now();
    let answers = service.store.extend(extensions.clone()).await?;
    let each = extensions.into_iter().zip(answers);
    Ok(each.map(|(extension, answer)| ExtensionOut::of(extension, answer, now)).collect())
}
