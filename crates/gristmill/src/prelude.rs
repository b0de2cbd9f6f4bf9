//! What most programs need, in one line: `use gristmill::prelude::*;`.

pub use crate::schedule::Scheduler;
pub use crate::worker::{
    Attempt, IntoHandler as _, Json, Next, Outcome, State, fail, from_fn, release_for, retry_in,
};
pub use crate::{Context, Mill, Put, TaskType, Worker};
