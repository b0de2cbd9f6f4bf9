//! `POST /v1/claims`: tasks for one attempt, given to a client that is there to take
//! them.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::poll::{self, Receipt};
use crate::access::Scope;
use crate::call::{self, Call};
use crate::message::claim::{ClaimIn, ClaimOut};
use crate::problem::{Answer, FAULT, Problem};

pub(crate) async fn claim(call: Call) -> Answer {
    let caller = call.caller.clone();
    let (service, asked) = call.json::<ClaimIn>().await?;
    let wanted = asked.meant(service.store.limits())?;
    for (at, queue) in wanted.queues.iter().enumerate() {
        let theirs = caller.expect_for(Scope::Work, queue);
        theirs.map_err(|problem| problem.at(format!("queues[{at}]")))?;
    }
    let _place = if wanted.wait.is_zero() { None } else { Some(service.waiter()?) };
    let queues = service.known.queues(&service).await?;
    service.sampled.saw(&wanted.worker, &wanted.queues);
    let caught = poll::claim(service.clone(), caller.clone(), wanted).await?;
    // It may have waited for a minute. What was caught for a token that was revoked
    // meanwhile goes back.
    service.door.still_takes(&caller).await?;
    if caller.is_limited() {
        service.leased.note(caught.claim().token, &caught.claim().queue);
    }
    let text = serde_json::to_vec(&ClaimOut::of(caught.claim(), &queues))
        .map_err(|error| Problem::new(&FAULT, error.to_string()))?;
    Ok(handed(text.into(), caught.receipt()))
}

/// The answer with a claim's text.
pub(crate) fn handed(text: Bytes, receipt: Receipt) -> Response {
    let body = Handed { text: Some(text), receipt };
    let mut response = call::json_text(StatusCode::OK, Bytes::new());
    *response.body_mut() = Body::new(body);
    response
}

/// A claim's text. Dropped before it was taken up for sending, the claim is given
/// back.
#[derive(Debug)]
struct Handed {
    text: Option<Bytes>,
    receipt: Receipt,
}

impl HttpBody for Handed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let text = self.text.take();
        if text.is_some() {
            self.receipt.taken();
        }
        Poll::Ready(text.map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.as_ref().map_or(0, |text| text.len() as u64))
    }
}
