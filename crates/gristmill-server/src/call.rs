//! A request as a route gets it: what it is about, said in words or in JSON.

use std::sync::Arc;

use axum::extract::{Query, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use gristmill::QueueName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::{Caller, Rule};
use crate::body;
use crate::problem::{Answer, INVALID, Problem, UNKNOWN_FIELD};
use crate::service::Service;

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) service: Arc<Service>,
    /// Who asks.
    pub(crate) caller: Caller,
    /// What stands in the path's braces.
    pub(crate) params: Vec<(String, String)>,
    pub(crate) request: Request,
}

impl Call {
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// What stands in the path under this name.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Refuses who may not do this to the queue that the path names, if it names one.
    pub(crate) fn expect_path(&self, rule: Rule) -> Answer<()> {
        let named = self.params.iter().any(|(known, _)| known == "queue");
        match rule {
            Rule::Needs(scope) if named => self.caller.expect_for(scope, &self.queue()?),
            _ => Ok(()),
        }
    }

    /// The queue that the path names.
    pub(crate) fn queue(&self) -> Answer<QueueName> {
        QueueName::new(self.param("queue"))
            .map_err(|error| Problem::field("queue", error.to_string()))
    }

    /// What the address says after its question mark.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Answer<T> {
        match Query::<T>::try_from_uri(self.request.uri()) {
            Ok(Query(query)) => Ok(query),
            Err(rejection) => {
                let said = rejection.body_text();
                let why = said.rsplit_once("query string: ").map_or(&*said, |(_, why)| why);
                let field = why.split(['`', ':']).find(|part| !part.contains(' '));
                let kind = if why.contains("unknown field") { &UNKNOWN_FIELD } else { &INVALID };
                let problem = Problem::new(kind, why.to_owned());
                Err(match named(why).or(field) {
                    Some(field) if !field.is_empty() => problem.at(field),
                    _ => problem,
                })
            }
        }
    }

    /// The body as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Answer<(Arc<Service>, T)> {
        let Call { service, request, .. } = self;
        let (parts, body) = request.into_parts();
        body::expect_json(&parts.headers)?;
        let bytes = body::read(&service, &parts.headers, body).await?;
        let value = body::parse(&bytes.bytes)?;
        Ok((service, value))
    }

    /// The body as JSON, or the default where there is none.
    pub(crate) async fn json_or_default<T>(self) -> Answer<(Arc<Service>, T)>
    where
        T: DeserializeOwned + Default,
    {
        let length = self.headers().get(header::CONTENT_LENGTH);
        let chunked = self.headers().contains_key(header::TRANSFER_ENCODING);
        if !chunked && length.is_none_or(|length| length == "0") {
            return Ok((self.service, T::default()));
        }
        self.json().await
    }
}

/// The field that serde's sentence is about: "unknown field `x`, expected ...".
fn named(why: &str) -> Option<&str> {
    let rest = why.split_once("field `")?.1;
    rest.split_once('`').map(|(field, _)| field)
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value)
        .map_err(|error| Problem::new(&crate::problem::FAULT, error.to_string()))?;
    Ok(json_text(status, text.into()))
}

/// An answer whose JSON is written already.
pub(crate) fn json_text(status: StatusCode, text: bytes::Bytes) -> Response {
    let mut response = Response::new(axum::body::Body::from(text));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
