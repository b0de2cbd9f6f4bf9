//! `/livez`, `/readyz`, `/metrics`: for those who watch the service.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use crate::call::{self, Call};
use crate::metrics;
use crate::problem::{Answer, Problem, STOPPING};

/// The process answers.
pub(crate) async fn livez(_: Call) -> Answer {
    call::json(StatusCode::OK, &json!({ "live": true }))
}

/// The store answers, and the service is not about to stop.
pub(crate) async fn readyz(call: Call) -> Answer {
    if call.service.is_stopping() {
        return Err(Problem::new(&STOPPING, "the service stops"));
    }
    call.service.sampled.stats(&call.service).await?;
    call::json(StatusCode::OK, &json!({ "ready": true }))
}

pub(crate) async fn metrics(call: Call) -> Answer {
    let mut response = Response::new(Body::from(metrics::text(&call.service, &call.caller).await));
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    Ok(response)
}
