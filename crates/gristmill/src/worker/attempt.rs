//! One attempt, as a straight line: run within the time limit, hear cancels,
//! and come out with an outcome or with nothing left to settle.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{ClaimedTask, Outcome};
use tokio::sync::watch;

use super::context::{Cancel, Context};
use super::stop::Stop;
use super::{Handler, heartbeat};

/// How long a cancelled handler may take to come to an end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// What is to be told to the store.
pub(super) enum Ended {
    /// Settle with this.
    With(Outcome),
    /// The lease is lost: whatever came out would be refused.
    Lost,
}

/// Runs the handler for one task.
pub(super) async fn run(
    handler: Arc<dyn Handler>,
    task: Arc<ClaimedTask>,
    context: Context,
    cancel: watch::Sender<Option<Cancel>>,
    stop: &Stop,
    timeout: Duration,
) -> Ended {
    let mut heard = cancel.subscribe();
    // A task of its own: a panic ends it and nothing else.
    let mut running = tokio::spawn(async move { handler.handle(&task, &context).await });
    let why = tokio::select! {
        biased;
        ended = &mut running => return Ended::With(outcome(ended)),
        why = heard.wait_for(Option::is_some) => why.ok().and_then(|why| *why),
        () = tokio::time::sleep(timeout) => Some(Cancel::Timeout),
        () = stop.over() => Some(Cancel::Stop),
    };
    let why = why.unwrap_or(Cancel::Stop);
    cancel.send_replace(Some(why));
    // It was told; a handler that obeys may still bring its own outcome.
    let obeyed = tokio::time::timeout(GRACE, &mut running).await;
    if obeyed.is_err() {
        running.abort();
    }
    match (why, obeyed) {
        (Cancel::LeaseLost, _) => Ended::Lost,
        // Done in the last moment is done: the lease was held all along.
        (_, Ok(Ok(Outcome::Done))) => Ended::With(Outcome::Done),
        (Cancel::Timeout, _) => Ended::With(Outcome::TimedOut(timeout)),
        (Cancel::Operator, _) => Ended::With(Outcome::Cancelled),
        (Cancel::Stop, _) => Ended::With(Outcome::Release { at: None, started: true }),
    }
}

fn outcome(ended: Result<Outcome, tokio::task::JoinError>) -> Outcome {
    match ended {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Outcome::Error(format!("the handler panicked: {}", said(&*panic))),
            Err(_) => Outcome::Error("the handler was cancelled".to_owned()),
        },
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Keeps a running attempt known to the heartbeat, and forgets it on every way
/// out.
pub(super) struct Running<'a> {
    handle: &'a heartbeat::Handle,
    token: gristmill_core::Token,
    id: gristmill_core::TaskId,
}

impl<'a> Running<'a> {
    pub(super) fn begin(
        handle: &'a heartbeat::Handle,
        token: gristmill_core::Token,
        id: gristmill_core::TaskId,
        cancel: watch::Sender<Option<Cancel>>,
    ) -> Self {
        handle.runs(token, id, cancel);
        Running { handle, token, id }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.handle.ended(self.token, self.id);
    }
}
