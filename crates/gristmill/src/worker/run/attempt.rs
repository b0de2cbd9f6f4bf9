//! How an attempt's end is read: a panic is an error, and after a cancel its
//! reason outweighs what the handler says.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use gristmill_core::Outcome;

use crate::worker::handler::reason;
use crate::worker::heartbeat::lease::Cancel;

/// Runs the handler's future; a panic ends it and nothing else.
pub(crate) async fn caught(handler: impl Future<Output = Outcome>) -> Outcome {
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
/// be refused. `said` is what the handler returned, if it did; `late` is one that
/// did after its time, told of that or not.
pub(crate) fn end(
    why: Option<Cancel>,
    said: Option<Outcome>,
    late: bool,
    timeout: Duration,
) -> Option<Outcome> {
    match (why, said) {
        (Some(Cancel::Operator), said) if said != Some(Outcome::Done) => Some(Outcome::Cancelled),
        // Whether or not it obeyed, whatever it says: a run that took too long
        // did not happen, so that `timeout` can be relied on. Where the lease is
        // lost the store refuses this like anything else.
        (Some(Cancel::Timeout), _) => Some(Outcome::TimedOut(timeout)),
        _ if late => Some(Outcome::TimedOut(timeout)),
        // Also a release of which the handler says that nothing began (a program that is
        // not there): that one is free however often.
        (None, Some(outcome)) => Some(outcome),
        // Done in the last moment is done, if the store still knows the lease;
        // and a task completed in the handler's transaction looks lost.
        (_, Some(Outcome::Done)) => Some(Outcome::Done),
        (Some(Cancel::LeaseLost), _) => None,
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
        let ends = |why, said| end(why, said, false, limit);
        assert_eq!(ends(None, said()), said());
        assert_eq!(ends(Some(Cancel::LeaseLost), said()), None);
        assert_eq!(ends(Some(Cancel::Operator), None), Some(Outcome::Cancelled));
        let back = Some(Outcome::Release { at: None, started: true });
        assert_eq!(ends(Some(Cancel::Stop), None), back);
        let not_begun = Some(Outcome::Release { at: None, started: false });
        assert_eq!(ends(None, not_begun.clone()), not_begun);
        assert_eq!(ends(Some(Cancel::Stop), not_begun), back, "it was cut off");
        let done = Some(Outcome::Done);
        for why in [Cancel::LeaseLost, Cancel::Operator, Cancel::Stop] {
            assert_eq!(ends(Some(why), done.clone()), done);
        }
    }

    #[test]
    fn what_comes_after_its_time_is_timed_out_whatever_it_says() {
        let limit = Duration::from_secs(1);
        let timed_out = Some(Outcome::TimedOut(limit));
        for said in [None, Some(Outcome::Done), Some(Outcome::Error("stopped".to_owned()))] {
            assert_eq!(end(Some(Cancel::Timeout), said.clone(), false, limit), timed_out);
            assert_eq!(end(None, said.clone(), true, limit), timed_out);
            assert_eq!(end(Some(Cancel::LeaseLost), said, true, limit), timed_out);
        }
    }
}
