//! Async functions as handlers: the task first, then whatever they ask for.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, Outcome};

use crate::worker::claim::served::Kind;
use crate::worker::handler::batch::{BatchContext, BatchHandler, Typed};
use crate::worker::handler::context::Context;
use crate::worker::handler::layer::{self, Layer};
use crate::worker::handler::typed::decode;
use crate::worker::{Handler, IntoOutcome};
use crate::{Mill, TaskType};

/// What a handler may ask for behind its task: [`State`](crate::worker::State),
/// [`Context`], the [`Mill`], or what you make of them.
#[diagnostic::on_unimplemented(
    message = "a handler cannot ask for `{Self}`",
    label = "not an argument of a handler",
    note = "behind its task a handler takes `Context`, `State<T>` (with `Worker::state` said \
            before), `Mill`, or a type of yours with `FromAttempt`"
)]
pub trait FromAttempt<S>: Sized {
    /// What this attempt gives.
    fn from_attempt(context: &Context, state: &S) -> Self;
}

impl<S> FromAttempt<S> for Context {
    fn from_attempt(context: &Context, _: &S) -> Self {
        context.clone()
    }
}

impl<S> FromAttempt<S> for Mill {
    fn from_attempt(context: &Context, _: &S) -> Self {
        context.mill().clone()
    }
}

/// What a handler of a batch may ask for behind its tasks, as [`FromAttempt`].
#[diagnostic::on_unimplemented(
    message = "a handler of a batch cannot ask for `{Self}`",
    label = "not an argument of a handler of a batch",
    note = "behind its tasks it takes `BatchContext`, `State<T>` (with `Worker::state` said \
            before), `Mill`, or a type of yours with `FromBatch`"
)]
pub trait FromBatch<S>: Sized {
    /// What this batch gives.
    fn from_batch(batch: &BatchContext, state: &S) -> Self;
}

impl<S> FromBatch<S> for BatchContext {
    fn from_batch(batch: &BatchContext, _: &S) -> Self {
        batch.clone()
    }
}

impl<S> FromBatch<S> for Mill {
    fn from_batch(batch: &BatchContext, _: &S) -> Self {
        batch.mill().clone()
    }
}

/// An async function that handles one type of task:
/// `async fn(Task, …) -> impl IntoOutcome`, where `…` are up to five arguments
/// that an attempt gives ([`FromAttempt`]). A closure says their types.
///
/// `Args` are its arguments; the compiler finds them by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle tasks",
    label = "not a handler of this worker",
    note = "a handler is an async function of a task (a type with `TaskType`), then, as it likes, \
            `State<T>`, `Context` or `Mill`, whose future is `Send`; it returns `()`, `Result<(), \
            E>`, `Outcome` or `Result<Outcome, E>`; a closure says the types of its arguments; \
            `State<T>` needs `Worker::state` before it"
)]
pub trait IntoHandler<S, Args>: Sized + Send + Sync + 'static {
    /// What it handles.
    type Task: TaskType;

    /// The handler, with its types forgotten.
    fn into_handler(self, state: S) -> Arc<dyn Handler>;

    /// Puts this around the handler, and around no other.
    fn layer<L: Layer>(self, layer: L) -> Layered<Self, L, S, Args> {
        Layered { handler: self, layer, args: PhantomData }
    }
}

/// An async function that handles a batch: `async fn(Vec<Typed<Task>>, …)`, as
/// [`IntoHandler`], with what a batch gives ([`FromBatch`]).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle batches",
    label = "not a handler of batches of this worker",
    note = "it is an async function of `Vec<Typed<Task>>`, then, as it likes, `State<T>`, \
            `BatchContext` or `Mill`, whose future is `Send`; a closure says the types of its \
            arguments; `State<T>` needs `Worker::state` before it"
)]
pub trait IntoBatchHandler<S, Args>: Sized + Send + Sync + 'static {
    /// What it handles.
    type Task: TaskType;

    #[doc(hidden)]
    fn into_batch_handler(self, state: S) -> BatchFn;
}

/// A handler of batches with its types forgotten: ours to change.
#[expect(missing_debug_implementations, reason = "there is nothing to show")]
pub struct BatchFn(pub(crate) Arc<dyn BatchHandler>);

/// A handler with a layer around it.
#[derive(Debug, Clone, Copy)]
pub struct Layered<H, L, S, Args> {
    handler: H,
    layer: L,
    args: PhantomData<fn(S, Args)>,
}

impl<S, H, L, Args> IntoHandler<S, Args> for Layered<H, L, S, Args>
where
    S: 'static,
    H: IntoHandler<S, Args>,
    L: Layer,
    Args: 'static,
{
    type Task = H::Task;

    fn into_handler(self, state: S) -> Arc<dyn Handler> {
        let inner = self.handler.into_handler(state);
        match layer::around(&[Arc::new(self.layer) as Arc<dyn Layer>], &Kind::One(inner.clone())) {
            Kind::One(layered) => layered,
            Kind::Many(_) => inner,
        }
    }
}

/// A function with its state and the types of its arguments.
struct Calls<F, S, Args> {
    call: F,
    state: S,
    args: PhantomData<fn(Args)>,
}

macro_rules! handlers {
    ($($arg:ident),*) => {
        #[async_trait]
        impl<S, T, F, R, Kind, $($arg,)*> Handler for Calls<F, S, (Kind, T, $($arg,)*)>
        where
            S: Send + Sync + 'static,
            T: TaskType,
            Kind: 'static,
            F: Fn(T, $($arg,)*) -> R + Send + Sync + 'static,
            R: Future + Send,
            R::Output: IntoOutcome<Kind>,
            $($arg: FromAttempt<S> + Send + 'static,)*
        {
            async fn handle(&self, task: &ClaimedTask, context: &Context) -> Outcome {
                // An error and not a failure for good: a newer worker may read it.
                let decoded = match decode::<T>(task) {
                    Ok(decoded) => decoded,
                    Err(error) => return Outcome::Error(error),
                };
                (self.call)(decoded, $($arg::from_attempt(context, &self.state),)*)
                    .await
                    .end(context)
            }
        }

        impl<S, T, F, R, Kind, $($arg,)*> IntoHandler<S, (Kind, T, $($arg,)*)> for F
        where
            S: Send + Sync + 'static,
            T: TaskType,
            Kind: 'static,
            F: Fn(T, $($arg,)*) -> R + Send + Sync + 'static,
            R: Future + Send + 'static,
            R::Output: IntoOutcome<Kind>,
            $($arg: FromAttempt<S> + Send + 'static,)*
        {
            type Task = T;

            fn into_handler(self, state: S) -> Arc<dyn Handler> {
                Arc::new(Calls { call: self, state, args: PhantomData })
            }
        }

        #[async_trait]
        impl<S, T, F, R, Kind, $($arg,)*> BatchHandler
            for Calls<F, S, (Kind, Vec<Typed<T>>, $($arg,)*)>
        where
            S: Send + Sync + 'static,
            T: TaskType,
            Kind: 'static,
            F: Fn(Vec<Typed<T>>, $($arg,)*) -> R + Send + Sync + 'static,
            R: Future + Send,
            R::Output: IntoOutcome<Kind>,
            $($arg: FromBatch<S> + Send + 'static,)*
        {
            async fn handle(&self, open: Vec<Context>, batch: BatchContext) -> Outcome {
                let tasks = batch.decode::<T>(open);
                if tasks.is_empty() {
                    return Outcome::Done;
                }
                (self.call)(tasks, $($arg::from_batch(&batch, &self.state),)*)
                    .await
                    .into_outcome()
            }
        }

        impl<S, T, F, R, Kind, $($arg,)*> IntoBatchHandler<S, (Kind, T, $($arg,)*)> for F
        where
            S: Send + Sync + 'static,
            T: TaskType,
            Kind: 'static,
            F: Fn(Vec<Typed<T>>, $($arg,)*) -> R + Send + Sync + 'static,
            R: Future + Send + 'static,
            R::Output: IntoOutcome<Kind>,
            $($arg: FromBatch<S> + Send + 'static,)*
        {
            type Task = T;

            fn into_batch_handler(self, state: S) -> BatchFn {
                let calls: Calls<F, S, (Kind, Vec<Typed<T>>, $($arg,)*)> =
                    Calls { call: self, state, args: PhantomData };
                BatchFn(Arc::new(calls))
            }
        }
    };
}

handlers!();
handlers!(A);
handlers!(A, B);
handlers!(A, B, C);
handlers!(A, B, C, D);
handlers!(A, B, C, D, E);
