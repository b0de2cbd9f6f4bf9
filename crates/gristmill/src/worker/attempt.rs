//! How an attempt's end is read: a panic is an error, and after a cancel its
//! reason outweighs what the handler says.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use gristmill_core::Outcome;

use super::lease::Cancel;
use super::reason;

/// Runs the handler's future; a panic ends it and nothing else.
pub(super) async fn caught(handler: impl Future<Output = Outcome>) -> Outcome {
    reason::remember_panics();
    let mut handler = pin!(handler);
    poll_fn(|context| {
        reason::forget_panic();
        // The future is not polled again after a panic, so nothing sees what
        // it left half done.
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Outcome::Error(reason::of_panic(&*panic))),
        }
    })
    .await
}

/// What is to be told to the store; nothing when the lease is lost and it would
/// be refused. `said` is what the handler returned, if it did.
pub(super) fn end(
    why: Option<Cancel>,
    said: Option<Outcome>,
    timeout: Duration,
) -> Option<Outcome> {
    match (why, said) {
        // It has begun, whatever the handler says: such releases are free only
        // so often.
        (None, Some(Outcome::Release { at, .. })) => Some(Outcome::Release { at, started: true }),
        (None, Some(outcome)) => Some(outcome),
        // Done in the last moment is done, if the store still knows the lease;
        // and a task completed in the handler's transaction looks lost.
        (_, Some(Outcome::Done)) => Some(Outcome::Done),
        (Some(Cancel::LeaseLost), _) => None,
        (Some(Cancel::Timeout), _) => Some(Outcome::TimedOut(timeout)),
        (Some(Cancel::Operator), _) => Some(Outcome::Cancelled),
        (Some(Cancel::Stop), _) => Some(Outcome::Release { at: None, started: true }),
        // The task of the runtime that ran it was ended from outside.
        (None, None) => Some(Outcome::Error("the handler was ended".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_outweighs_everything_but_done() {
        let limit = Duration::from_secs(1);
        let said = || Some(Outcome::Error("stopped".to_owned()));
        assert_eq!(end(None, said(), limit), said());
        assert_eq!(end(Some(Cancel::LeaseLost), said(), limit), None);
        assert_eq!(end(Some(Cancel::Timeout), said(), limit), Some(Outcome::TimedOut(limit)));
        assert_eq!(end(Some(Cancel::Operator), None, limit), Some(Outcome::Cancelled));
        let back = Some(Outcome::Release { at: None, started: true });
        assert_eq!(end(Some(Cancel::Stop), None, limit), back);
        assert_eq!(end(None, Some(Outcome::Release { at: None, started: false }), limit), back);
        let done = Some(Outcome::Done);
        assert_eq!(end(Some(Cancel::LeaseLost), done.clone(), limit), done);
    }
}
