//! Typed handlers: an async function over one task.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, Outcome};

use super::{Context, Handler, IntoOutcome, Worker};
use crate::TaskType;

/// A closure that handles one type of task.
struct Single<T, F> {
    handle: F,
    task: PhantomData<fn(T)>,
}

#[async_trait]
impl<T, F, R> Handler for Single<T, F>
where
    T: TaskType,
    F: Fn(T, Context) -> R + Send + Sync + 'static,
    R: Future + Send,
    R::Output: IntoOutcome,
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
    pub fn handle<T, F, R>(self, handle: F) -> Self
    where
        T: TaskType,
        F: Fn(T, Context) -> R + Send + Sync + 'static,
        R: Future + Send + 'static,
        R::Output: IntoOutcome,
    {
        self.queue_of::<T>(Arc::new(Single { handle, task: PhantomData }))
    }
}
