//! How a handler says what became of its attempt.

use std::fmt::Display;
use std::time::Duration;

use gristmill_core::{Outcome, When};

/// What a handler may return: `Result<(), E>` for the usual case, an
/// [`Outcome`] or `Result<Outcome, E>` when there is more to say than done or
/// error. An `Err` goes to the queue's retry policy.
pub trait IntoOutcome {
    /// The outcome meant.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<E: Display> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(|error| Outcome::Error(error.to_string()), |()| Outcome::Done)
    }
}

impl<E: Display> IntoOutcome for Result<Outcome, E> {
    fn into_outcome(self) -> Outcome {
        self.unwrap_or_else(|error| Outcome::Error(error.to_string()))
    }
}

/// Run it again after this time; counts as an attempt.
#[must_use]
pub const fn retry_in(delay: Duration) -> Outcome {
    Outcome::Retry { at: When::After(delay), reason: None }
}

/// It can never succeed: failed for good, now.
#[must_use]
pub fn fail(reason: impl Display) -> Outcome {
    Outcome::Fail(reason.to_string())
}

/// Give it back for now; the attempt does not count (at most twenty times).
#[must_use]
pub const fn release_for(delay: Duration) -> Outcome {
    Outcome::Release { at: Some(When::After(delay)), started: true }
}
