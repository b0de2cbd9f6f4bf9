//! Handlers that did not come to an end: nobody waits for them any more, and whoever
//! ends should know of those that still run.

use std::sync::{Mutex, PoisonError};

use gristmill_core::{QueueName, TaskId};
use tokio::task::AbortHandle;

use crate::worker::control::left::Left;
use crate::worker::handler::context::Context;
use crate::worker::run::hand::Hand;

/// All of a worker's.
#[derive(Default)]
pub(crate) struct Abandoned(Mutex<Vec<Handler>>);

/// One of them.
struct Handler {
    runner: AbortHandle,
    /// By the stop: whoever ends now should know of it.
    by_stop: bool,
    queue: QueueName,
    tasks: Vec<TaskId>,
}

impl Abandoned {
    /// From now on nobody waits for the handler of these tasks.
    pub(crate) fn add(&self, hand: &Hand, runner: AbortHandle, open: &[Context], by_stop: bool) {
        let mut handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.retain(|handler| handler.by_stop || !handler.runner.is_finished());
        handlers.push(Handler {
            runner,
            by_stop,
            queue: hand.served.name.clone(),
            tasks: open.iter().map(|context| context.id).collect(),
        });
    }

    /// Tells of those that count as running still.
    pub(crate) fn tell(&self, left: &mut Left) {
        for handler in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if handler.by_stop || !handler.runner.is_finished() {
                handler.tasks.iter().for_each(|id| left.running(&handler.queue, *id));
            }
        }
    }
}
