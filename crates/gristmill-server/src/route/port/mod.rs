//! `/v1/port/*`: the store's verbs for gristmill's own programs elsewhere, with which
//! `http://…` is one more store. What travels is ours to change with any version; the
//! routes above it are not.
//!
//! Verbs that are plainly those of the routes above it need the same scope and keep foreign
//! queues apart (`flow.rs`, `look.rs`, `documents.rs`); all others need an admin's token that is for every
//! queue (`rest.rs`), and so does what tells of all queues at once.

mod documents;
mod flow;
mod look;
mod rest;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use gristmill::StoreError;
use gristmill::port::WakeMark;
use gristmill_remote::wire::{
    About, Fault, MARK_HEADER, OLDEST, VERSION, VERSION_HEADER, Verb, Wire, concealed,
};
use serde_json::Value;

use crate::access::Caller;
use crate::call::{self, Call};
use crate::limits;
use crate::problem::{Answer, PORT_VERSION, Problem};
use crate::service::Service;

pub(crate) use documents::*;
pub(crate) use flow::*;
pub(crate) use look::*;
pub(crate) use rest::*;

/// What the service says of itself to who opens it as a store. Any form of the port may
/// ask: who is refused is told why by what it reads here.
pub(crate) async fn about(call: Call) -> Answer {
    let Call { service, caller, .. } = call;
    let now = service.mill.time().await.map_err(|error| failed(&caller, error))?;
    let about = About {
        port: VERSION,
        oldest: OLDEST,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: service.store.capabilities(),
        limits: service.store.limits().clone(),
        body_bytes: limits::body_bytes(service.store.limits()),
        now,
    };
    said(&service, &about.write())
}

/// What a verb was asked with.
async fn asked<V: Verb>(call: Call) -> Answer<(Arc<Service>, Caller, V::Asked)> {
    expect_version(call.headers())?;
    let caller = call.caller.clone();
    let (service, value) = call.json::<Value>().await?;
    let asked = V::Asked::read(value).map_err(|Fault { at, why }| match &*at {
        "" => Problem::new(&crate::problem::INVALID, why),
        at => Problem::field(at, why),
    })?;
    Ok((service, caller, asked))
}

/// Refuses a client that says things which would be passed over here, or for which this
/// service is too new. One that says nothing is not gristmill's own and knows itself.
fn expect_version(headers: &HeaderMap) -> Answer<()> {
    let Some(said) = headers.get(VERSION_HEADER) else { return Ok(()) };
    let version = said.to_str().ok().and_then(|said| said.parse::<u32>().ok());
    match version {
        Some(version) if (OLDEST..=VERSION).contains(&version) => Ok(()),
        Some(version) if version > VERSION => {
            let why = format!(
                "the client speaks version {version} of the port and this service up to {VERSION}"
            );
            Err(Problem::new(&PORT_VERSION, why))
        }
        _ => {
            let why = format!("this service speaks the port from version {OLDEST} on");
            Err(Problem::new(&PORT_VERSION, why))
        }
    }
}

/// The answer of a verb.
fn answered<V: Verb>(service: &Service, answer: &V::Answer) -> Answer {
    said(service, &answer.write())
}

fn said(service: &Service, value: &Value) -> Answer {
    let mut response = call::json(StatusCode::OK, value)?;
    if let Ok(mark) = HeaderValue::try_from(mark(service)) {
        response.headers_mut().insert(MARK_HEADER, mark);
    }
    Ok(response)
}

/// Up to where this service's wake-ups are: read after the verb, so that whoever waits
/// from here has seen what it did.
fn mark(service: &Service) -> String {
    format!("{}.{}", service.epoch, service.store.mark().number())
}

/// The mark that a client says; nothing when it is of a service that is gone.
fn since(service: &Service, said: &str) -> Option<WakeMark> {
    let (epoch, number) = said.rsplit_once('.')?;
    (epoch == service.epoch).then(|| number.parse().ok().map(WakeMark::at))?
}

/// The store's error, for people and as the error that it is.
fn failed(caller: &Caller, error: StoreError) -> Box<Problem> {
    let told = match concealed(error.clone()) {
        StoreError::UnknownQueue { name, .. } if caller.is_limited() => {
            StoreError::UnknownQueue { name, suggestion: None }
        }
        told => told,
    };
    Box::<Problem>::from(error).with("error", told.write())
}

/// Has the store do it, whether or not the client stays.
async fn done<T: Send + 'static>(
    caller: &Caller,
    doing: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Answer<T> {
    match tokio::spawn(doing).await {
        Ok(done) => done.map_err(|error| failed(caller, error)),
        Err(_) => Err(failed(caller, StoreError::fault("the verb was ended"))),
    }
}

#[cfg(test)]
mod tests {
    use gristmill_remote::wire::verbs::VERBS;

    use super::*;
    use crate::router::ROUTES;

    #[test]
    fn every_verb_has_a_route_and_every_route_a_verb() {
        let mut routes: Vec<&str> =
            ROUTES.iter().filter_map(|route| route.path.strip_prefix("/v1/port/")).collect();
        let mut verbs = VERBS.to_vec();
        routes.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(routes, verbs);
    }

    #[test]
    fn a_client_of_another_time_is_told_so() {
        let version = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(VERSION_HEADER, said.parse().expect("a value"));
            expect_version(&headers).map_err(|problem| problem.code())
        };
        assert_eq!(version(&VERSION.to_string()), Ok(()));
        for other in [VERSION + 1, OLDEST - 1] {
            assert_eq!(version(&other.to_string()), Err("port_version"));
        }
        assert_eq!(version("x"), Err("port_version"));
        assert_eq!(expect_version(&HeaderMap::new()).map_err(|problem| problem.code()), Ok(()));
    }
}
