//! What handlers share.

use crate::worker::BatchContext;
use crate::worker::handler::context::Context;
use crate::worker::handler::function::{FromAttempt, FromBatch};

/// What the worker's handlers share, or a part of it: an argument of a handler
/// ([`Worker::state`](crate::worker::Worker::state)).
#[derive(Debug, Clone, Copy)]
pub struct State<T>(pub T);

/// A part of a state. Everything that can be cloned is one of itself; say which
/// parts yours has:
///
/// ```
/// # use gristmill::worker::FromRef;
/// # #[derive(Clone)] struct Pool;
/// # #[derive(Clone)] struct App { pool: Pool }
/// impl FromRef<App> for Pool {
///     fn from_ref(app: &App) -> Self {
///         app.pool.clone()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the worker's state `{T}` nor a part of it",
    label = "no handler of this worker can have it",
    note = "say `Worker::state` before `handle`, with a state that is `Clone`; a handler takes it \
            as `State<{T}>`, or a part of it once `FromRef<{T}>` is implemented for the part"
)]
pub trait FromRef<T> {
    /// The part.
    fn from_ref(state: &T) -> Self;
}

impl<T: Clone> FromRef<T> for T {
    fn from_ref(state: &T) -> Self {
        state.clone()
    }
}

impl<S, T: FromRef<S>> FromAttempt<S> for State<T> {
    fn from_attempt(_: &Context, state: &S) -> Self {
        State(T::from_ref(state))
    }
}

impl<S, T: FromRef<S>> FromBatch<S> for State<T> {
    fn from_batch(_: &BatchContext, state: &S) -> Self {
        State(T::from_ref(state))
    }
}
