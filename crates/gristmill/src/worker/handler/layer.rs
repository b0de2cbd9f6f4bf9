//! Layers: code around handlers, every one of a worker's or a single one.
//!
//! ```
//! use std::time::Instant;
//!
//! use gristmill::prelude::*;
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Mail { to: String }
//! # impl TaskType for Mail { const QUEUE: &'static str = "mails"; }
//!
//! async fn timed(attempt: Attempt, next: Next) -> Outcome {
//!     let (queue, id, start) = (attempt.queue().clone(), attempt.context().id, Instant::now());
//!     let outcome = next.run(attempt).await;
//!     println!("{queue} #{id} took {:?}: {outcome:?}", start.elapsed());
//!     outcome
//! }
//!
//! async fn send(mail: Mail) {
//!     println!("to {}", mail.to);
//! }
//!
//! # async fn example(mill: Mill) -> Result<(), gristmill::Error> {
//! let every = Worker::new(&mill).layer(from_fn(timed)).handle(send);
//! let one = Worker::new(&mill).handle(send.layer(from_fn(timed)));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "tower")]
mod tower;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, Outcome, QueueName};

#[cfg(feature = "tower")]
pub use self::tower::{Tower, tower};
use crate::worker::claim::served::Kind;
use crate::worker::handler::batch::{BatchContext, BatchHandler};
use crate::worker::handler::context::Context;
use crate::worker::handler::state::State;
use crate::worker::{Handler, IntoOutcome};

/// What a layer sees: one task, or the tasks of a batch.
#[derive(Debug, Clone)]
pub struct Attempt {
    first: Context,
    others: Vec<Context>,
    batch: Option<BatchContext>,
}

impl Attempt {
    /// The attempt at the task; of a batch at its first one.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.first
    }

    /// The attempts at all tasks; one unless it is a batch.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.first.queue
    }

    /// The batch's surroundings, where it is one.
    #[must_use]
    pub const fn batch(&self) -> Option<&BatchContext> {
        self.batch.as_ref()
    }
}

/// How an attempt goes on its way.
pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What a layer is around: the next layer, or the handler.
#[derive(Clone)]
pub struct Next(Arc<dyn Fn(Attempt) -> Running + Send + Sync>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

impl Next {
    /// For a [`Layer`] of your own.
    pub fn new(run: impl Fn(Attempt) -> Running + Send + Sync + 'static) -> Self {
        Next(Arc::new(run))
    }

    /// Goes on. Not called, the handler does not run, and what the layer returns
    /// settles the task; of a batch, everything that is open.
    pub async fn run(&self, attempt: Attempt) -> Outcome {
        (self.0)(attempt).await
    }
}

/// Something that goes around handlers. It is asked once for each handler, when
/// the worker starts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer",
    label = "not a layer",
    note = "make one with `from_fn(async fn(Attempt, Next) -> Outcome)`, or, with the feature \
            `tower`, of a layer of tower with `gristmill::worker::layer::tower(..)`"
)]
pub trait Layer: Send + Sync + 'static {
    /// The inner one with this around it.
    fn around(&self, inner: Next) -> Next;
}

/// A layer of an async function: `async fn(Attempt, Next) -> Outcome`, or whatever
/// a handler may return.
pub fn from_fn<F, R, Kind>(call: F) -> FromFn<impl Fn(Attempt, Next) -> Running + Send + Sync>
where
    F: Fn(Attempt, Next) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoOutcome<Kind>,
{
    FromFn(Arc::new(move |attempt, next| -> Running {
        let running = call(attempt, next);
        Box::pin(async move { running.await.into_outcome() })
    }))
}

/// As [`from_fn`], for a function that takes something of yours in front:
/// `async fn(State<T>, Attempt, Next) -> Outcome`.
pub fn from_fn_with_state<T, F, R, Kind>(
    state: T,
    call: F,
) -> FromFn<impl Fn(Attempt, Next) -> Running + Send + Sync>
where
    T: Clone + Send + Sync + 'static,
    F: Fn(State<T>, Attempt, Next) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoOutcome<Kind>,
{
    from_fn(move |attempt, next| call(State(state.clone()), attempt, next))
}

/// A layer of an async function.
pub struct FromFn<F>(Arc<F>);

impl<F> Clone for FromFn<F> {
    fn clone(&self) -> Self {
        FromFn(self.0.clone())
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}

impl<F> Layer for FromFn<F>
where
    F: Fn(Attempt, Next) -> Running + Send + Sync + 'static,
{
    fn around(&self, inner: Next) -> Next {
        let call = self.0.clone();
        Next::new(move |attempt| call(attempt, inner.clone()))
    }
}

/// The handler with these around it, the first outermost; itself where there are
/// none, so that who has no layers pays for none.
pub(crate) fn around(layers: &[Arc<dyn Layer>], kind: &Kind) -> Kind {
    if layers.is_empty() {
        return kind.clone();
    }
    let chain = |inner: Next| layers.iter().rev().fold(inner, |inner, layer| layer.around(inner));
    match kind {
        Kind::One(handler) => {
            let handler = handler.clone();
            Kind::One(Arc::new(Around(chain(Next::new(move |attempt| {
                let handler = handler.clone();
                Box::pin(async move { handler.handle(attempt.first.task(), &attempt.first).await })
            })))))
        }
        Kind::Many(handler) => {
            let handler = handler.clone();
            Kind::Many(Arc::new(Around(chain(Next::new(move |attempt| {
                let handler = handler.clone();
                Box::pin(async move {
                    let Attempt { first, mut others, batch } = attempt;
                    others.insert(0, first);
                    match batch {
                        Some(batch) => handler.handle(others, batch).await,
                        None => Outcome::Error("a batch without its surroundings".to_owned()),
                    }
                })
            })))))
        }
    }
}

/// A handler with layers around it.
struct Around(Next);

#[async_trait]
impl Handler for Around {
    async fn handle(&self, _: &ClaimedTask, context: &Context) -> Outcome {
        let attempt = Attempt { first: context.clone(), others: Vec::new(), batch: None };
        self.0.run(attempt).await
    }
}

#[async_trait]
impl BatchHandler for Around {
    async fn handle(&self, open: Vec<Context>, batch: BatchContext) -> Outcome {
        let mut open = open.into_iter();
        match open.next() {
            Some(first) => {
                let attempt = Attempt { first, others: open.collect(), batch: Some(batch) };
                self.0.run(attempt).await
            }
            None => Outcome::Done,
        }
    }
}
