//! Typed handlers: an async function over one task.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, Outcome};

use super::{Context, Handler, IntoOutcome, Worker};
use crate::TaskType;

/// A closure that handles one type of task, and the kind of what it returns.
struct Single<T, F, Kind> {
    handle: F,
    types: PhantomData<fn(T, Kind)>,
}

#[async_trait]
impl<T, F, R, Kind> Handler for Single<T, F, Kind>
where
    T: TaskType,
    Kind: 'static,
    F: Fn(T, Context) -> R + Send + Sync + 'static,
    R: Future + Send,
    R::Output: IntoOutcome<Kind>,
{
    async fn handle(&self, task: &ClaimedTask, context: &Context) -> Outcome {
        // An error and not a failure for good: a newer worker may read it.
        let decoded = match decode::<T>(task) {
            Ok(decoded) => decoded,
            Err(error) => return Outcome::Error(error),
        };
        (self.handle)(decoded, context.clone()).await.into_outcome()
    }
}

/// Reads a claimed task's payload as its type.
///
/// # Errors
/// In words, when the payload is not of that type.
pub fn decode<T: TaskType>(task: &ClaimedTask) -> Result<T, String> {
    T::from_payload(&task.payload).map_err(|error| error.to_string())
}

impl Worker {
    /// Serves a task type's queue with an async function. It returns
    /// `Result<(), E>`, where `Ok` is done and an error goes to the queue's
    /// retry policy, or an [`Outcome`] (see [`IntoOutcome`]).
    pub fn handle<T, F, R, Kind>(self, handle: F) -> Self
    where
        T: TaskType,
        Kind: 'static,
        F: Fn(T, Context) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: IntoOutcome<Kind>,
    {
        self.queue_of::<T>(Arc::new(Single { handle, types: PhantomData }))
    }
}
