//! `GET /v1`: version, limits, and what is there and what is not.

use axum::http::StatusCode;
use serde_json::json;

use crate::call::{self, Call};
use crate::limits;
use crate::message::fields::millis;
use crate::problem::Answer;

pub(crate) async fn about(call: Call) -> Answer {
    let store = &call.service.store;
    let (known, can) = (store.limits(), store.capabilities());
    let body = json!({
        "name": "gristmill",
        "version": env!("CARGO_PKG_VERSION"),
        "api": "v1",
        "documents": { "openapi": "/openapi.json", "docs": "/docs" },
        "capabilities": {
            "survives_kill": can.survives_kill,
            "survives_power_cut": can.survives_power_cut,
            "several_processes": can.several_processes,
            "atomic_follow_ups": can.atomic_follow_ups,
            "exact_capacity": can.exact_capacity,
            "ndjson": true,
            "events": true,
            "claim_tokens": true,
            "claim_tokens_after_restart": true,
            "filters": true,
            "operations": true,
            "results": true,
            "progress": true,
            "task_timeout": true,
            "task_max_attempts": true,
            "tokens": true,
        },
        "limits": {
            "body_bytes": limits::body_bytes(known),
            "line_bytes": limits::line_bytes(known),
            "payload_bytes": known.payload_bytes,
            "text_bytes": known.text_bytes,
            "headers_bytes": known.headers_bytes,
            "put_tasks": known.put_tasks,
            "stream_tasks": limits::STREAM_TASKS,
            "claim_queues": limits::CLAIM_QUEUES,
            "claim_tasks": known.claim_tasks,
            "claim_bytes": known.claim_bytes,
            "settlements": known.settlements,
            "extensions": limits::EXTENSIONS,
            "progress_tasks": limits::PROGRESS,
            "progress_bytes": gristmill::Progress::MESSAGE_BYTES,
            "find_keys": limits::FIND_KEYS,
            "page": known.page,
            "error_bytes": known.error_bytes,
            "wait_ms": millis(known.wait),
            "connections": limits::CONNECTIONS,
        },
    });
    call::json(StatusCode::OK, &body)
}
