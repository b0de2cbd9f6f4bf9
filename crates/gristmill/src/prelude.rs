//! What most programs need, in one line: `use gristmill::prelude::*;`.

pub use crate::schedule::Scheduler;
pub use crate::worker::{Outcome, fail, release_for, retry_in};
pub use crate::{Context, Mill, Put, TaskType, Worker};
