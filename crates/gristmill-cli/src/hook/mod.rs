//! The handler that is a URL: each task is posted to it, signed, and the answer's
//! status is its outcome.
//!
//! ```text
//!   2xx       done                     429, 503  released, until Retry-After
//!   410, 422  failed for good          anything else, or no answer: error
//! ```

mod address;
mod client;
mod signature;
mod verdict;

use bytes::Bytes;
use gristmill::port::{ClaimedTask, Clock, SystemClock};
use gristmill::worker::Context;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

pub(crate) use address::Address;
pub(crate) use client::Client;
use client::{ANSWER_BYTES, Answer};
pub(crate) use signature::Secrets;
pub(crate) use verdict::Verdict;

/// A URL that handles tasks, and its connections.
#[derive(Debug)]
pub(crate) struct Hook {
    address: Address,
    secrets: Secrets,
    /// Or why there is none.
    client: Result<Client, String>,
}

impl std::fmt::Display for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

/// Two are the same that post to the same address with the same secrets.
impl PartialEq for Hook {
    fn eq(&self, other: &Self) -> bool {
        (&self.address, &self.secrets) == (&other.address, &other.secrets)
    }
}

impl Hook {
    pub(crate) fn new(address: Address, secrets: Secrets) -> Self {
        Hook { client: Client::new(address.clone()), address, secrets }
    }

    /// Posts the task and reads what its answer makes of it. Dropped while it waits, the
    /// connection is closed.
    pub(crate) async fn handle(
        &self,
        task: &ClaimedTask,
        context: &Context,
        line: Vec<u8>,
    ) -> Verdict {
        let posted = async {
            let client = self.client.as_ref().map_err(Clone::clone)?;
            client.post(self.headers(task, &line)?, Bytes::from(line)).await
        };
        let answered = tokio::select! {
            answered = posted => answered,
            () = context.cancelled() => Err("the handler was stopped".to_owned()),
        };
        match answered {
            Ok(answer) => judged(&answer),
            Err(why) => Verdict::Error(format!("{}: {why}", self.address)),
        }
    }

    fn headers(&self, task: &ClaimedTask, body: &[u8]) -> Result<HeaderMap, String> {
        // The same for each attempt, so that receivers know one that they have seen, and
        // another one in another store, where numbers begin anew.
        let id = format!("task_{}_{}", task.id, task.created_at.as_micros());
        let seconds = SystemClock::default().now().as_micros().div_euclid(1_000_000);
        let signature = self.secrets.sign(&id, seconds, body);
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let mut headers = HeaderMap::new();
        headers.insert(HOST, value(&self.address.authority)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("gristmill/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, text) in [
            ("webhook-id", &id),
            ("webhook-timestamp", &seconds.to_string()),
            ("webhook-signature", &signature),
        ] {
            headers.insert(HeaderName::from_static(name), value(text)?);
        }
        for name in ["traceparent", "tracestate"] {
            // One that cannot be a header is in the body all the same.
            let said = task.headers.get(name).and_then(|said| HeaderValue::from_str(said).ok());
            if let Some(said) = said {
                headers.insert(HeaderName::from_static(name), said);
            }
        }
        Ok(headers)
    }
}

fn judged(answer: &Answer) -> Verdict {
    let now = SystemClock::default().now().as_micros();
    let now = jiff::Timestamp::from_microsecond(now).unwrap_or_default();
    if answer.is_cut {
        tracing::warn!("an answer had more than {ANSWER_BYTES} bytes; the rest was not read");
    }
    verdict::of(&answer.head, &answer.body, now)
}
