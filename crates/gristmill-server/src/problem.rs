//! What is said when a request cannot be served: problem+json (RFC 9457) with a
//! stable code, the field at fault, and what to do.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gristmill::port::NameError;
use gristmill::{Refusal, StoreError};
use serde_json::{Map, Value, json};

/// The media type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// One kind of problem: code, status, title, and what to do about it.
pub(crate) struct Kind {
    pub(crate) code: &'static str,
    pub(crate) status: u16,
    pub(crate) title: &'static str,
    pub(crate) advice: &'static str,
}

macro_rules! kinds {
    ($( $name:ident = $status:literal $code:literal, $title:literal, $advice:literal; )+) => {
        $( pub(crate) const $name: Kind =
            Kind { code: $code, status: $status, title: $title, advice: $advice }; )+

        /// All of them, for the documents.
        pub(crate) const KINDS: &[Kind] = &[$( $name ),+];
    };
}

kinds! {
    NOT_JSON = 400 "not_json", "The body is not JSON.", "Correct the text at the place that is named.";
    BAD_REQUEST = 400 "bad_request", "The request cannot be read.", "Send HTTP/1.1 with a Host header.";
    UNAUTHORIZED = 401 "unauthorized", "This service asks for a token.", "Send 'Authorization: Bearer TOKEN'; 'gristmill token create' makes one.";
    FORBIDDEN = 403 "forbidden", "The token is not good for this.", "Use one with the scope and for the queue that are named; 'gristmill token list' shows what each is good for.";
    READ_ONLY = 403 "read_only", "These pages only show.", "Use a service that lets you act, or the command line.";
    WRONG_ORIGIN = 403 "wrong_origin", "A page of another site may not call this service.", "Call it from a program, or from a page that it served itself.";
    NO_QUEUE = 404 "unknown_queue", "There is no such queue.", "Declare it first: PUT /v1/queues/{queue}, or 'gristmill queue add'.";
    NO_TASK = 404 "unknown_task", "There is no such task.", "It is done and not kept, was deleted, or never stood.";
    NO_SCHEDULE = 404 "unknown_schedule", "There is no such schedule.", "GET /v1/schedules lists them.";
    NO_OPERATION = 404 "unknown_operation", "There is no such operation.", "GET /v1/operations lists them; one that ended is kept for a week.";
    NO_ROUTE = 404 "unknown_route", "There is nothing at this address.", "GET /openapi.json and /docs list what there is.";
    WRONG_METHOD = 405 "method_not_allowed", "This address does not take this method.", "See the Allow header, or /docs.";
    TOO_SLOW = 408 "too_slow", "The body did not come in time.", "Send it without pauses; nothing was done.";
    QUEUE_FULL = 409 "queue_full", "The queue holds as many tasks as it may.", "Put it again when workers have made room.";
    ID_REUSED = 409 "id_reused", "This id was used for another payload.", "Use a fresh id for each task; repeat one only with the same payload.";
    NO_SUBJECT = 409 "no_such_subject", "The queue is bound to a table that has no such row.", "Put the row first, or correct the key.";
    NO_TABLE = 409 "subject_table_gone", "The queue is bound to a table that is not there.", "Make the table, or take the binding off the queue.";
    UNDONE = 409 "undone", "Another task of the same atomic put was not taken, so none was.", "See 'answers' for the one at fault.";
    TOKEN_IN_USE = 409 "token_in_use", "This token holds a claim that cannot be shown again.", "Claim with a fresh token; its tasks come back when the lease ends.";
    TOO_MANY_OPERATIONS = 409 "too_many_operations", "As many operations as may be are not over yet.", "Wait for them, or stop some: POST /v1/operations/{id}/stop.";
    PORT_VERSION = 409 "port_version", "The client and the service are of different times.", "Update the service first, then its clients.";
    OVERLAPS = 409 "overlaps", "The task of the schedule's last fire still stands.", "Wait for it, or cancel it.";
    TOO_LARGE = 413 "body_too_large", "The body is too large.", "Send less at once: GET /v1 tells the limits.";
    PAYLOAD_TOO_LARGE = 413 "payload_too_large", "The payload is too large.", "Put a reference to the data instead of the data.";
    WRONG_TYPE = 415 "unsupported_media_type", "The body is not of a type that is read here.", "Say 'content-type: application/json' ('curl --json' does).";
    WRONG_HOST = 421 "wrong_host", "This service does not answer under that name.", "Use localhost, 127.0.0.1 or [::1] as the host.";
    INVALID = 422 "invalid", "Something in the request cannot be used.", "Correct the field that is named.";
    UNKNOWN_FIELD = 422 "unknown_field", "The request has a field that is not known here.", "Take the field out, or correct its name.";
    DOES_NOT_FIT = 422 "does_not_fit", "The payload does not fit the queue's contract.", "Send the fields that the contract names.";
    NOT_SUPPORTED = 422 "not_supported", "This store cannot do that.", "See the capabilities in GET /v1.";
    TOO_MANY_FAILURES = 429 "too_many_failures", "Too many wrong tokens came from this address.", "Correct the token; a right one is taken at once.";
    FAULT = 500 "store_fault", "The store has a fault that repeating will not cure.", "Somebody has to look: 'gristmill doctor' and 'gristmill check' tell more.";
    BUSY = 503 "store_busy", "The store is busy; nothing was written.", "Try again after the time in Retry-After.";
    HELD = 503 "store_held", "Somebody's open transaction is in the way; nothing was written.", "Try again after the time in Retry-After.";
    UNAVAILABLE = 503 "store_unavailable", "The store is away; nothing was written.", "Try again after the time in Retry-After.";
    DISK_FULL = 503 "disk_full", "The disk is full; nothing was written.", "Make room, then try again.";
    OVERLOADED = 503 "overloaded", "The service has as much in hand as it may.", "Try again after the time in Retry-After.";
    STOPPING = 503 "stopping", "The service is stopping.", "Try again after the time in Retry-After.";
    UNKNOWN = 504 "outcome_unknown", "The store did not answer: it may or may not have happened.", "Repeat it only if it is harmless twice: a put with an id, a claim with a token and a settlement are.";
}

/// One problem, with what is known of this case.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: &'static str,
    status: StatusCode,
    title: &'static str,
    advice: Cow<'static, str>,
    detail: String,
    field: Option<String>,
    retry_after: Option<u32>,
    challenge: Option<String>,
    more: Map<String, Value>,
}

/// A handler's answer.
pub(crate) type Answer<T = Response> = Result<T, Box<Problem>>;

impl Problem {
    pub(crate) fn new(kind: &Kind, detail: impl Into<String>) -> Box<Self> {
        Box::new(Problem {
            kind: kind.code,
            status: StatusCode::from_u16(kind.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            title: kind.title,
            advice: Cow::Borrowed(kind.advice),
            detail: detail.into(),
            field: None,
            retry_after: (kind.status == 503).then_some(1),
            challenge: None,
            more: Map::new(),
        })
    }

    /// A field that cannot have this value.
    pub(crate) fn field(field: impl Into<String>, why: impl Into<String>) -> Box<Self> {
        Problem::new(&INVALID, why).at(field)
    }

    /// The field at fault.
    pub(crate) fn at(mut self: Box<Self>, field: impl Into<String>) -> Box<Self> {
        self.field = Some(field.into());
        self
    }

    /// The same, of an element of a list.
    pub(crate) fn within(mut self: Box<Self>, place: &str) -> Box<Self> {
        self.field = Some(match self.field.take() {
            Some(field) if field.starts_with('[') => format!("{place}{field}"),
            Some(field) => format!("{place}.{field}"),
            None => place.to_owned(),
        });
        self
    }

    /// When to come again.
    pub(crate) fn after(mut self: Box<Self>, seconds: u32) -> Box<Self> {
        self.retry_after = Some(seconds);
        self
    }

    /// What would let the caller in (RFC 6750).
    pub(crate) fn challenged(mut self: Box<Self>, challenge: String) -> Box<Self> {
        self.challenge = Some(challenge);
        self
    }

    /// The same without a name that was meant, perhaps: it may be one that the caller is
    /// not to know of.
    pub(crate) fn without_suggestion(mut self: Box<Self>) -> Box<Self> {
        if let Some(at) = self.detail.find("; did you mean").filter(|_| self.status == 404) {
            self.detail.truncate(at);
        }
        self
    }

    /// One more fact under a name of its own.
    pub(crate) fn with(mut self: Box<Self>, name: &str, value: Value) -> Box<Self> {
        self.more.insert(name.to_owned(), value);
        self
    }

    pub(crate) const fn title(&self) -> &'static str {
        self.title
    }

    pub(crate) fn advice(&self) -> &str {
        &self.advice
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) const fn code(&self) -> &'static str {
        self.kind
    }

    /// When to come again, in seconds.
    pub(crate) const fn wait(&self) -> Option<u32> {
        self.retry_after
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn at_field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    pub(crate) fn json(&self) -> Value {
        let mut fields = json!({
            "type": format!("/docs#{}", self.kind),
            "title": self.title,
            "status": self.status.as_u16(),
            "code": self.kind,
            "detail": self.detail,
            "advice": self.advice,
        });
        if let Value::Object(map) = &mut fields {
            if let Some(field) = &self.field {
                map.insert("field".to_owned(), json!(field));
            }
            map.extend(self.more.clone());
        }
        fields
    }

    /// What a refused put is told.
    pub(crate) fn refused(why: &Refusal) -> Box<Self> {
        let kind = match why {
            Refusal::QueueFull { .. } | Refusal::StoreFull { .. } => &QUEUE_FULL,
            Refusal::PayloadTooLarge { .. } => &PAYLOAD_TOO_LARGE,
            Refusal::DoesNotFit(_) => &DOES_NOT_FIT,
            Refusal::UnknownQueue { .. } => &NO_QUEUE,
            Refusal::NoSuchSubject { .. } => &NO_SUBJECT,
            Refusal::SubjectTableGone { .. } => &NO_TABLE,
            Refusal::IdReused { .. } => &ID_REUSED,
            Refusal::Undone { .. } => &UNDONE,
            _ => &INVALID,
        };
        let problem = Problem::new(kind, why.to_string())
            .with("outcome", json!("refused"))
            .with("reason", json!(why.code()));
        match why {
            Refusal::DoesNotFit(_) | Refusal::PayloadTooLarge { .. } => problem.at("payload"),
            Refusal::IdReused { .. } => problem.at("id"),
            Refusal::NoSuchSubject { .. } => problem.at("key"),
            Refusal::UnknownQueue { .. } => problem.at("queue"),
            _ => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge.and_then(|said| HeaderValue::try_from(said).ok()) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<StoreError> for Box<Problem> {
    fn from(error: StoreError) -> Self {
        let said = error.whole();
        let kind = match &error {
            StoreError::Busy(_) => &BUSY,
            StoreError::Held(_) => &HELD,
            StoreError::Unavailable(_) => &UNAVAILABLE,
            StoreError::Closed => &STOPPING,
            StoreError::DiskFull(_) => &DISK_FULL,
            StoreError::Unknown(_) => &UNKNOWN,
            StoreError::Invalid(_) => &INVALID,
            StoreError::UnknownQueue { .. } => return Problem::new(&NO_QUEUE, said).at("queue"),
            StoreError::NotSupported(_) => &NOT_SUPPORTED,
            // What the store says of itself may name files and servers: it goes to the
            // log, and the caller is told that somebody has to look there.
            _ => {
                tracing::error!(target: "gristmill::server", error = %said, "the store failed");
                return Problem::new(&FAULT, "the store failed; the service's log says why");
            }
        };
        Problem::new(kind, said)
    }
}

impl From<gristmill::Error> for Box<Problem> {
    fn from(error: gristmill::Error) -> Self {
        match error {
            gristmill::Error::Store(error) => error.into(),
            gristmill::Error::Name(error) => error.into(),
            other => Problem::new(&INVALID, other.to_string()),
        }
    }
}

impl From<NameError> for Box<Problem> {
    fn from(error: NameError) -> Self {
        Problem::new(&INVALID, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_repeated_says_when() {
        for error in [
            StoreError::busy("x".to_owned()),
            StoreError::held("x".to_owned()),
            StoreError::unavailable("x".to_owned()),
            StoreError::disk_full("x".to_owned()),
        ] {
            let response = Box::<Problem>::from(error).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(response.headers().contains_key(header::RETRY_AFTER));
        }
        let unknown = Box::<Problem>::from(StoreError::unknown("x".to_owned()));
        assert_eq!((unknown.status.as_u16(), unknown.code()), (504, "outcome_unknown"));
    }

    #[test]
    fn a_faulty_store_is_not_quoted() {
        let fault = Box::<Problem>::from(StoreError::corrupt("at /secret/place".to_owned()));
        assert!(!fault.json().to_string().contains("secret"), "{:?}", fault.json());
    }

    #[test]
    fn codes_are_told_apart() {
        let mut codes: Vec<&str> = KINDS.iter().map(|kind| kind.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), KINDS.len());
    }
}
