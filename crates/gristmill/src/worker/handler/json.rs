//! What a handler returns for whoever waits for its task.

use gristmill_core::Outcome;
use serde::Serialize;

use crate::worker::IntoOutcome;
use crate::worker::handler::context::Context;
use crate::worker::handler::outcome::Plain;
use crate::worker::handler::reason::IntoReason;

/// A handler's return value: the task is done, and the value is kept as JSON for whoever
/// waits for it ([`Put::wait`](crate::Put::wait)) or asks for it
/// ([`Mill::result`](crate::Mill::result)), as long as its queue says. At most 64 KiB.
///
/// ```
/// # use gristmill::prelude::*;
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Sum(Vec<u64>);
/// # impl TaskType for Sum { const QUEUE: &'static str = "sums"; }
/// async fn sum(Sum(all): Sum) -> Result<Json<u64>, String> {
///     let sum = all.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
///     Ok(Json(sum.ok_or("too large")?))
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutcome<Plain> for Json<T> {
    fn into_outcome(self) -> Outcome {
        // Asked for only of a batch.
        let why = "a batch has no one result: give each task its own, with its context's `result`";
        Outcome::Fail(why.to_owned())
    }

    fn end(self, context: &Context) -> Outcome {
        match context.result(&self.0) {
            Ok(()) => Outcome::Done,
            // No repeating gives it another form.
            Err(error) => Outcome::Fail(format!("{error:#}")),
        }
    }
}

impl<T: Serialize, E: IntoReason<Kind>, Kind> IntoOutcome<Kind> for Result<Json<T>, E> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(|error| Outcome::Error(error.into_reason()), Json::into_outcome)
    }

    fn end(self, context: &Context) -> Outcome {
        match self {
            Ok(value) => value.end(context),
            Err(error) => Outcome::Error(error.into_reason()),
        }
    }
}
