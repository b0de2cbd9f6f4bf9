//! The runner: calls the handler for the tasks of a hand, one after the other
//! or as a batch, on a task of the runtime of its own.
//!
//! It may hang in a handler that never returns. Then its overseer gives it up
//! and starts another one, and nothing it does later is heard.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::Outcome;
use tracing::Instrument;

use crate::worker::claim::served::Kind;
use crate::worker::control::shared::Shared;
use crate::worker::handler::batch::BatchContext;
use crate::worker::handler::context::Context;
use crate::worker::run::attempt::caught;
use crate::worker::run::hand::Hand;

/// Handlers that never wait leave the thread to others after this time.
const TURN: Duration = Duration::from_millis(1);

/// Runs what is in the hand until it is empty, or until it is given up.
pub(crate) async fn run(shared: Arc<Shared>, hand: Arc<Hand>, runner: u64) {
    let settler = &shared.settler;
    let many = matches!(hand.served.kind, Kind::Many(_));
    let (mut turn, mut spent) = (Instant::now(), Duration::ZERO);
    // At a stop the overseer gives back what is left.
    while !shared.stop.is_asked() {
        let (open, cancelled) = hand.begin(runner, many);
        for (context, _) in cancelled {
            settler.ended(&hand, context, None, false, true);
        }
        let Some(open) = open else { return };
        let tasks = u32::try_from(open.len()).unwrap_or(u32::MAX).max(1);
        let numbers = &hand.served.numbers;
        let now = shared.timer.clock().now();
        for context in &open {
            numbers.waited(now.since(context.task().run_at));
        }
        let outcome = match (&hand.served.kind, open.first()) {
            (Kind::One(handler), Some(context)) => {
                let span = span(context);
                let attempt = caught(handler.handle(context.task(), context));
                ended(&span, attempt.instrument(span.clone()).await)
            }
            (Kind::Many(handler), Some(first)) => {
                let span = span(first);
                let batch = BatchContext::new(hand.clone(), runner, settler.clone(), &open);
                let attempt = caught(handler.handle(open, batch));
                ended(&span, attempt.instrument(span.clone()).await)
            }
            (_, None) => return,
        };
        // Given up meanwhile: someone else has settled it.
        let Some(ran) = hand.finish(runner) else { return };
        hand.served.took(ran.took / tasks);
        numbers.ran(ran.took);
        spent += ran.took;
        for context in ran.open {
            settler.ended(&hand, context, Some(outcome.clone()), ran.late, ran.last);
        }
        let over = turn.elapsed() >= TURN;
        if over || ran.last {
            hand.served.spent(std::mem::take(&mut spent));
        }
        if over {
            tokio::task::yield_now().await;
            turn = Instant::now();
        }
    }
}

/// What a handler's log lines stand in.
fn span(context: &Context) -> tracing::Span {
    tracing::info_span!(
        "attempt",
        queue = %context.queue,
        id = %context.id,
        attempt = context.attempt,
        traceparent = context.traceparent(),
        outcome = tracing::field::Empty,
    )
}

/// Says in the span how it ended.
fn ended(span: &tracing::Span, outcome: Outcome) -> Outcome {
    span.record("outcome", outcome.end().as_str());
    outcome
}
