//! What the keeper is asked: a piece of work with the way back for its answer.

use std::time::Instant;

use gristmill_core::memory::State as Ledger;
use gristmill_core::{Kept, Result, StoreError, TaskId, Timestamp};
use tokio::sync::oneshot;

use crate::held::{Held, Unread};
use crate::persist::Sync;

/// What a verb works on: the ledger, at one time, under the folder's lock.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) held: &'a mut Held,
    pub(crate) now: Timestamp,
    /// How durable the frame must be at least.
    pub(crate) least: Sync,
    /// A verb failed after it had changed something.
    pub(crate) broken: bool,
    /// How many tasks were put from outside.
    pub(crate) puts: usize,
}

impl Desk<'_> {
    pub(crate) fn ledger(&mut self) -> &mut Ledger {
        &mut self.held.ledger
    }

    /// A payload's bytes, from memory or from the task's file. Nothing when
    /// they are lost: then the task is set aside.
    pub(crate) fn payload(
        &mut self,
        id: TaskId,
        known: bytes::Bytes,
    ) -> Result<Option<bytes::Bytes>> {
        if !self.held.ledger.is_hollow(id) {
            return Ok(Some(known));
        }
        let read = self.held.payload(id);
        self.of_file(id, read)
    }

    /// What a task keeps, from memory or from its file. When that is damaged the task
    /// is set aside, and nothing is found of it.
    pub(crate) fn kept(&mut self, id: TaskId, known: Option<Kept>) -> Result<Option<Option<Kept>>> {
        if known.is_some() || self.held.ledger.checkpoint_mark(id).is_none() {
            return Ok(Some(known));
        }
        let read = self.held.kept(id);
        self.of_file(id, read)
    }

    /// What was read of a task's file. A task whose file is damaged is set aside, and
    /// nothing is found of it.
    fn of_file<T>(&mut self, id: TaskId, read: Result<T, Unread>) -> Result<Option<T>> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(Unread::Fault(error)) => {
                self.broken = true;
                Err(error)
            }
            Err(Unread::Lost(why)) => {
                self.held.set_aside(id, &why, self.now)?;
                Ok(None)
            }
        }
    }
}

/// A request with its way back.
pub(crate) trait Ask: Send {
    /// When.
    fn asked(&self) -> Instant;
    /// Runs it; may be called again after the folder was read anew.
    fn run(&mut self, desk: &mut Desk<'_>) -> Result<()>;
    /// Answers: what it found, or the error of the write.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// A request made of a function.
pub(crate) struct Asked<T, F> {
    asked: Instant,
    least: Sync,
    work: F,
    found: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Asked<T, F> {
    pub(crate) fn new(least: Sync, work: F) -> (Self, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Asked { asked: Instant::now(), least, work, found: None, reply }, answer)
    }
}

impl<T, F> Ask for Asked<T, F>
where
    T: Send,
    F: FnMut(&mut Desk<'_>) -> Result<T> + Send,
{
    fn asked(&self) -> Instant {
        self.asked
    }

    fn run(&mut self, desk: &mut Desk<'_>) -> Result<()> {
        self.found = Some((self.work)(desk)?);
        desk.least = desk.least.max(self.least);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Asked { found, reply, .. } = *self;
        let answer = outcome.and_then(|()| found.ok_or(StoreError::Closed));
        // Nobody waits for it any more: what was asked is done all the same.
        let _ = reply.send(answer);
    }
}

/// What the keeper is told.
pub(crate) enum Order {
    Ask(Box<dyn Ask>),
    /// Someone waits: look for what other processes do.
    Look,
    Close,
}
