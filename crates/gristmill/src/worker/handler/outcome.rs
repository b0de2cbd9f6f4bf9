//! How a handler says what became of its attempt.

use std::time::Duration;

use gristmill_core::{Outcome, When};

use crate::worker::handler::context::Context;
use crate::worker::handler::reason::IntoReason;

/// What a handler may return: `Result<(), E>` for the usual case, `()` where
/// nothing can go wrong, `Result<Json<T>, E>` or [`Json<T>`](crate::worker::Json) with a value
/// for whoever waits for the task, an
/// [`Outcome`] or `Result<Outcome, E>` when there is more to say than done or
/// error. An `Err` goes to the queue's retry policy, with all its causes as the
/// task's error ([`IntoReason`]).
///
/// `Kind` is that of the error; the compiler finds it by itself.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not an outcome",
    note = "return `()`, `Result<(), E>`, `Result<Outcome, E>` or `Outcome`, where `E` is an error, a \
            boxed one, or a `String`"
)]
pub trait IntoOutcome<Kind> {
    /// The outcome meant.
    fn into_outcome(self) -> Outcome;

    /// The same of one task's handler, whose context takes along what it returns.
    fn end(self, context: &Context) -> Outcome
    where
        Self: Sized,
    {
        let _ = context;
        self.into_outcome()
    }
}

/// The kind of what cannot be an error.
#[derive(Debug)]
pub struct Plain(());

impl IntoOutcome<Plain> for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome<Plain> for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl<E: IntoReason<Kind>, Kind> IntoOutcome<Kind> for Result<(), E> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(|error| Outcome::Error(error.into_reason()), |()| Outcome::Done)
    }
}

impl<E: IntoReason<Kind>, Kind> IntoOutcome<Kind> for Result<Outcome, E> {
    fn into_outcome(self) -> Outcome {
        self.unwrap_or_else(|error| Outcome::Error(error.into_reason()))
    }
}

/// Run it again after this time; counts as an attempt.
#[must_use]
pub const fn retry_in(delay: Duration) -> Outcome {
    Outcome::Retry { at: When::After(delay), reason: None }
}

/// It can never succeed: failed for good, now. The reason is a text or an error,
/// which is kept with all its causes.
#[must_use]
pub fn fail<Kind>(reason: impl IntoReason<Kind>) -> Outcome {
    Outcome::Fail(reason.into_reason())
}

/// Give it back for now; the attempt does not count (at most twenty times).
#[must_use]
pub const fn release_for(delay: Duration) -> Outcome {
    Outcome::Release { at: Some(When::After(delay)), started: true }
}
