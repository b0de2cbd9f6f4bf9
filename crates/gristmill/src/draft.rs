//! What was said about a task before it is put, on whichever way it goes.

use std::borrow::Cow;
use std::time::Duration;

use gristmill_core::{NewTask, QueueName, Start, Timestamp};

use crate::{Error, Mill, TaskType};

/// The header that carries a W3C trace context.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// The header that carries what vendors add to it.
pub(crate) const TRACESTATE: &str = "tracestate";

/// A task and its queue as far as they were said.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) queue: Cow<'static, str>,
    pub(crate) task: NewTask,
    pub(crate) delay: Option<Duration>,
    pub(crate) at: Option<Timestamp>,
}

impl Draft {
    pub(crate) fn typed<T: TaskType>(task: &T) -> Result<Self, Error> {
        let mut draft = Self::raw(T::QUEUE.into(), NewTask::new(task.to_payload()?));
        draft.task.key = task.key();
        Ok(draft)
    }

    pub(crate) const fn raw(queue: Cow<'static, str>, task: NewTask) -> Self {
        Draft { queue, task, delay: None, at: None }
    }

    /// The task as the store takes it, once the mill's hook has seen it.
    pub(crate) fn finish(self, mill: &Mill) -> Result<NewTask, Error> {
        let start = match (self.delay, self.at) {
            (Some(_), Some(_)) => return Err(Error::TwoStarts),
            (Some(delay), None) => Start::After(delay),
            (None, Some(at)) => Start::At(at),
            (None, None) => Start::Now,
        };
        let mut task = NewTask { start, ..self.task };
        mill.before_put(&self.queue, &mut task);
        Ok(task)
    }

    /// As [`Draft::finish`], with the queue by its name.
    pub(crate) fn finish_for(self, mill: &Mill) -> Result<(QueueName, NewTask), Error> {
        let queue = QueueName::new(&self.queue)?;
        Ok((queue, self.finish(mill)?))
    }
}

/// Whether this is `version-trace-parent-flags`, in lower-case hex.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    parts.len() >= 4
        && parts.iter().zip([2, 32, 16, 2]).all(|(part, len)| part.len() == len)
        && parts.iter().take(4).all(|part| part.chars().all(hex))
}
