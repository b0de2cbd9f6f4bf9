//! What the writer is asked: a piece of work with the way back for its answer.

use gristmill_core::{QueueName, Result, StoreError, Token};
use tokio::sync::oneshot;

use crate::write::Write;

/// What an answer must survive, which decides how the group is committed.
#[derive(Debug, Clone)]
pub(crate) enum Weight {
    /// A power cut may undo it: claims, extensions, reports.
    Light,
    /// Light, unless the queue's claims are durable.
    Claim(QueueName),
    /// As these queues say, and those of these leases.
    Queues(Vec<QueueName>, Vec<Token>),
    /// It must survive a power cut.
    Full,
}

impl Weight {
    /// Whether it is a put from outside, which can wait for room.
    pub(crate) fn is_put(&self) -> bool {
        matches!(self, Weight::Queues(_, tokens) if tokens.is_empty())
    }
}

/// A request with its way back.
pub(crate) trait Ask: Send {
    fn weight(&self) -> &Weight;
    /// Runs it; may be called again after a rollback.
    fn run(&mut self, write: &mut Write<'_, '_>) -> Result<()>;
    /// Answers: what it found, or the error of the commit.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// A request made of a function.
pub(crate) struct Asked<T, F> {
    weight: Weight,
    work: F,
    found: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Asked<T, F> {
    pub(crate) fn new(weight: Weight, work: F) -> (Self, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { weight, work, found: None, reply };
        (asked, answer)
    }
}

impl<T, F> Ask for Asked<T, F>
where
    T: Send,
    F: FnMut(&mut Write<'_, '_>) -> Result<T> + Send,
{
    fn weight(&self) -> &Weight {
        &self.weight
    }

    fn run(&mut self, write: &mut Write<'_, '_>) -> Result<()> {
        self.found = Some((self.work)(write)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Asked { found, reply, .. } = *self;
        let answer = outcome.and_then(|()| found.ok_or(StoreError::Closed));
        // Nobody waits for it any more: what was asked is done all the same.
        let _ = reply.send(answer);
    }
}

/// What the writer is told.
pub(crate) enum Order {
    Ask(Box<dyn Ask>),
    /// Someone waits: look for other processes' commits.
    Look,
    Close,
}
