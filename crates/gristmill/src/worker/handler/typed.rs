//! Serving a task type's queue with an async function.

use gristmill_core::ClaimedTask;

use crate::TaskType;
use crate::worker::Worker;
use crate::worker::claim::served::Kind;
use crate::worker::handler::function::{IntoBatchHandler, IntoHandler};

/// Reads a claimed task's payload as its type.
///
/// # Errors
/// In words, when the payload is not of that type.
pub fn decode<T: TaskType>(task: &ClaimedTask) -> Result<T, String> {
    T::from_payload(&task.payload).map_err(|error| error.whole())
}

impl<S: Clone> Worker<S> {
    /// Serves a task type's queue with an async function of the task and, as it
    /// likes, of [`State`](crate::worker::State), [`Context`](crate::worker::Context) and
    /// [`Mill`](crate::Mill). It returns `()` or `Result<(), E>`, where `Ok` is
    /// done and an error goes to the queue's retry policy, or an
    /// [`Outcome`](crate::worker::Outcome) (see [`IntoOutcome`](crate::worker::IntoOutcome)).
    ///
    /// A queue has one handler: a second one is an error when the worker starts.
    pub fn handle<H, Args>(self, handler: H) -> Self
    where
        H: IntoHandler<S, Args>,
    {
        let handler = handler.into_handler(self.state.clone());
        self.serves(H::Task::QUEUE, Kind::One(handler), std::any::type_name::<H::Task>())
    }

    /// Serves a task type's queue with an async function over a batch,
    /// `Vec<Typed<Task>>` and, as it likes, [`State`](crate::worker::State),
    /// [`BatchContext`](crate::worker::BatchContext) and [`Mill`](crate::Mill). It may
    /// settle single tasks; what it leaves open is settled by what it returns.
    /// After an error the tasks come back one by one.
    pub fn handle_batch<H, Args>(self, handler: H) -> Self
    where
        H: IntoBatchHandler<S, Args>,
    {
        let handler = handler.into_batch_handler(self.state.clone()).0;
        self.serves(H::Task::QUEUE, Kind::Many(handler), std::any::type_name::<H::Task>())
    }
}
