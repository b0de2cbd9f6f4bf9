//! Layers of tower around handlers: an attempt is the request, its outcome the
//! response.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use gristmill_core::Outcome;
use tower_service::Service;

use super::{Attempt, Layer, Next, Running};
use crate::worker::IntoReason;

/// A layer of tower as one of ours. Its service has an [`Attempt`] as its request
/// and an [`Outcome`] as its response; an error of the layer's own (a timeout, a
/// full limit) goes to the queue's retry policy.
///
/// ```
/// # use std::time::Duration;
/// # use gristmill::prelude::*;
/// # use gristmill::worker::layer;
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Mail { to: String }
/// # impl TaskType for Mail { const QUEUE: &'static str = "mails"; }
/// # fn example(mill: &Mill) {
/// use tower::limit::ConcurrencyLimitLayer;
///
/// let worker = Worker::new(mill)
///     .processors(32)
///     .layer(layer::tower(ConcurrencyLimitLayer::new(4)))
///     .handle(async |mail: Mail| println!("to {}", mail.to));
/// # }
/// ```
pub const fn tower<L>(layer: L) -> Tower<L> {
    Tower(layer)
}

/// A layer of tower.
#[derive(Debug, Clone, Copy)]
pub struct Tower<L>(L);

impl<L> Layer for Tower<L>
where
    L: tower_layer::Layer<Next> + Send + Sync + 'static,
    L::Service: Service<Attempt, Response = Outcome> + Clone + Send + 'static,
    <L::Service as Service<Attempt>>::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    <L::Service as Service<Attempt>>::Future: Send + 'static,
{
    fn around(&self, inner: Next) -> Next {
        // Made once: what the layer counts, its services share.
        let service = Arc::new(Mutex::new(self.0.layer(inner)));
        Next::new(move |attempt| {
            let mut service = service.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Box::pin(async move {
                let answered = match poll_fn(|context| service.poll_ready(context)).await {
                    Ok(()) => service.call(attempt).await,
                    Err(error) => Err(error),
                };
                let error = |error: Box<dyn Error + Send + Sync>| error.into_reason();
                answered.unwrap_or_else(|why| Outcome::Error(error(why.into())))
            })
        })
    }
}

impl Service<Attempt> for Next {
    type Response = Outcome;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn std::future::Future<Output = Result<Outcome, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        let running: Running = (self.0)(attempt);
        Box::pin(async move { Ok(running.await) })
    }
}
