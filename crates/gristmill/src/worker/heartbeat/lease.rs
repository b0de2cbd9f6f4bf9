//! A claim in hand: its token, which of its tasks should stop, how many are
//! still open, and until when it is to be extended.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gristmill_core::{TaskId, Token};
use tokio::sync::watch;

use crate::Mill;
use crate::worker::heartbeat::news::News;

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// Another worker may have the task: the result will be refused.
    LeaseLost,
    /// An operator cancelled the task.
    Operator,
    /// The worker stops and its patience is over.
    Stop,
    /// Its timeout passed.
    Timeout,
}

/// Who of a claim should stop. One board a claim, not one channel a task: most
/// tasks are over long before anyone wants to stop them.
#[derive(Debug, Default)]
pub(crate) struct Board {
    all: Option<Cancel>,
    some: Vec<(TaskId, Cancel)>,
}

impl Board {
    fn of(&self, id: TaskId) -> Option<Cancel> {
        // A lost lease outweighs whatever else was said.
        self.all.or_else(|| self.some.iter().find(|(other, _)| *other == id).map(|(_, why)| *why))
    }
}

/// Until when a lease is worth extending. Somebody has to say so again and
/// again: where every thread of the runtime is blocked nobody does, and the tasks
/// must not stay with this worker for that.
#[derive(Debug, Default)]
struct Worth {
    /// What runs may take until then, whatever else is said.
    runs: Option<Instant>,
    /// What waits to begin or to be settled is tended until then.
    tended: Option<Instant>,
}

/// What everyone who deals with a claim shares.
pub(crate) struct Lease {
    pub(crate) token: Token,
    pub(crate) mill: Mill,
    board: watch::Sender<Board>,
    open: watch::Sender<usize>,
    worth: Mutex<Worth>,
    /// How far its tasks are.
    pub(crate) news: News,
}

impl Lease {
    pub(crate) fn new(mill: Mill, token: Token, open: usize) -> Self {
        let (board, open) = (watch::Sender::default(), watch::Sender::new(open));
        Lease { token, mill, board, open, worth: Mutex::default(), news: News::default() }
    }

    fn worth(&self) -> MutexGuard<'_, Worth> {
        // Two instants are valid whatever a panicking holder did.
        self.worth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handler runs, and has until then.
    pub(crate) fn runs_until(&self, until: Option<Instant>) {
        self.worth().runs = until;
    }

    /// Somebody looks after what waits, and will again before then.
    pub(crate) fn tended_until(&self, until: Instant) {
        self.worth().tended = Some(until);
    }

    /// Whether it is worth extending.
    pub(crate) fn is_worth_extending(&self, now: Instant) -> bool {
        let worth = self.worth();
        worth.runs.or(worth.tended).is_none_or(|until| now < until)
    }

    /// Tells one task's handler to stop. The first reason stays.
    pub(crate) fn cancel(&self, id: TaskId, why: Cancel) {
        self.board.send_if_modified(|board| {
            let new = board.of(id).is_none();
            if new {
                board.some.push((id, why));
            }
            new
        });
    }

    /// The lease went to someone else.
    pub(crate) fn lost(&self) {
        self.board.send_modify(|board| board.all = Some(Cancel::LeaseLost));
    }

    /// Makes who hears of cancels look, although there is none.
    pub(crate) fn look_again(&self) {
        self.board.send_modify(|_| {});
    }

    /// Why this task's handler should stop, if it should.
    pub(crate) fn cancelled(&self, id: TaskId) -> Option<Cancel> {
        self.board.borrow().of(id)
    }

    /// Hears of every cancel.
    pub(crate) fn board(&self) -> watch::Receiver<Board> {
        self.board.subscribe()
    }

    /// Returns when this task's handler should stop.
    pub(crate) async fn until_cancelled(&self, id: TaskId) {
        // The sender is `self`, so it cannot go away meanwhile.
        let _ = self.board.subscribe().wait_for(|board| board.of(id).is_some()).await;
    }

    /// So many tasks are not open any more; says whether these were the last.
    pub(crate) fn close(&self, tasks: usize) -> bool {
        // Only the end is news.
        self.open.send_if_modified(|open| {
            *open = open.saturating_sub(tasks);
            *open == 0
        })
    }

    /// How many tasks are not settled yet.
    pub(crate) fn open(&self) -> usize {
        *self.open.borrow()
    }

    /// Returns when everything of this claim is settled.
    pub(crate) async fn settled(&self) {
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }
}

/// Without the token: a log is not the place for it.
impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("open", &self.open()).finish_non_exhaustive()
    }
}
