//! What a bulk put reads: tasks of any queues, ahead of the flush under way.

use std::borrow::Cow;
use std::pin::Pin;

use futures_core::Stream;
use gristmill_core::{NewTask, QueueName};

use crate::draft::Draft;
use crate::{Error, IntoPut, Mill};

/// Where tasks come from, and those that were read ahead. A flush has tasks of
/// one queue; those of others wait for theirs, in the same bound.
pub(crate) struct Input<'s, S> {
    mill: &'s Mill,
    tasks: &'s mut S,
    /// Tasks that are read ahead at most.
    size: usize,
    /// The queue of the next flush.
    queue: Cow<'static, str>,
    ahead: Vec<NewTask>,
    others: Vec<Draft>,
    /// It is not asked again: it has ended, or has a task without a form.
    end: Option<Result<(), Error>>,
}

impl<'s, S> Input<'s, S>
where
    S: Stream + Unpin,
    S::Item: IntoPut,
{
    pub(crate) fn new(mill: &'s Mill, tasks: &'s mut S, size: usize) -> Self {
        let (ahead, others) = (Vec::new(), Vec::new());
        Input { mill, tasks, size, queue: Cow::Borrowed(""), ahead, others, end: None }
    }

    /// How many tasks were read and not taken.
    pub(crate) fn read_ahead(&self) -> usize {
        self.ahead.len() + self.others.len()
    }

    /// Whether the next flush is read, as far as there is one.
    pub(crate) fn is_read(&self) -> bool {
        self.end.is_some() || self.read_ahead() >= self.size
    }

    /// Reads the next flush. What was read is kept when this is dropped.
    pub(crate) async fn read(&mut self) {
        while !self.is_read() {
            match next(self.tasks).await.map(|task| task.into_put().into_draft()) {
                Some(draft) => {
                    if let Err(cause) = draft.and_then(|draft| self.keep(draft)) {
                        self.end = Some(Err(cause));
                    }
                }
                None => self.end = Some(Ok(())),
            }
        }
    }

    fn keep(&mut self, draft: Draft) -> Result<(), Error> {
        if self.ahead.is_empty() && self.others.is_empty() {
            self.queue.clone_from(&draft.queue);
        }
        if draft.queue == self.queue {
            self.ahead.push(draft.finish(self.mill)?);
        } else {
            self.others.push(draft);
        }
        Ok(())
    }

    /// The next flush with its queue; no queue at the end.
    pub(crate) async fn take(&mut self) -> Result<(Option<QueueName>, Vec<NewTask>), Error> {
        self.read().await;
        if let Some(Err(_)) = &self.end
            && let Some(Err(cause)) = self.end.replace(Ok(()))
        {
            self.ahead.clear();
            self.others.clear();
            return Err(cause);
        }
        if self.ahead.is_empty() {
            return Ok((None, Vec::new()));
        }
        let queue = QueueName::new(&self.queue)?;
        let room = self.size - self.others.len().min(self.size);
        let taken = std::mem::replace(&mut self.ahead, Vec::with_capacity(room));
        // The oldest of those that wait says whose turn it is.
        for draft in std::mem::take(&mut self.others) {
            self.keep(draft)?;
        }
        Ok((Some(queue), taken))
    }
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
