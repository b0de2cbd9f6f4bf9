//! What a user writes: handlers, what they may ask for, what they may answer, and the
//! layers around them.

pub(crate) mod batch;
pub(crate) mod checkpoint;
pub(crate) mod context;
pub(crate) mod function;
pub(crate) mod json;
pub mod layer;
pub(crate) mod outcome;
pub(crate) mod reason;
pub(crate) mod state;
pub(crate) mod typed;

use async_trait::async_trait;
use gristmill_core::{ClaimedTask, Outcome};

use self::context::Context;

/// The user's code for a queue. What it returns settles the task.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt. Watch [`Context::cancelled`]: after it, the result
    /// counts only if it comes before the handler is dropped.
    async fn handle(&self, task: &ClaimedTask, context: &Context) -> Outcome;
}
