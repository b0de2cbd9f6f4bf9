//! Settling: telling the store how an attempt ended, under the lease's token.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::{
    AttemptEnd, FollowUp, Payload, PutAnswer, QueueName, TaskId, TaskProgress, Timestamp, Token,
};

/// When a task that goes back may run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At this instant.
    At(Timestamp),
    /// After this much time, by the store's clock.
    After(Duration),
}

impl When {
    /// The instant meant, at the store's `now`.
    #[must_use]
    pub fn instant(self, now: Timestamp) -> Timestamp {
        match self {
            When::At(at) => at.clamp(Timestamp::EPOCH, Timestamp::MAX),
            When::After(delay) => now.after(delay),
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded: the task is deleted and counted.
    Done,
    /// It went wrong: the queue's policy decides between retry and failed.
    Error(String),
    /// The queue's timeout passed; treated as an error.
    TimedOut(Duration),
    /// Run it again at this time; counts as an attempt.
    Retry {
        /// When.
        at: When,
        /// Why, for the history.
        reason: Option<String>,
    },
    /// It can never succeed: failed now.
    Fail(String),
    /// Give it back; the attempt does not count.
    Release {
        /// When it may be claimed again; at once in its old place if not said.
        at: Option<When>,
        /// Whether a handler had begun. Only twenty such releases are free.
        started: bool,
    },
    /// The handler obeyed a cancel: deleted and counted as cancelled.
    Cancelled,
}

impl Outcome {
    /// The word for it in a task's history.
    #[must_use]
    pub const fn end(&self) -> AttemptEnd {
        match self {
            Outcome::Done => AttemptEnd::Done,
            Outcome::Error(_) => AttemptEnd::Error,
            Outcome::TimedOut(_) => AttemptEnd::TimedOut,
            Outcome::Retry { .. } => AttemptEnd::Retry,
            Outcome::Fail(_) => AttemptEnd::Fail,
            Outcome::Release { .. } => AttemptEnd::Release,
            Outcome::Cancelled => AttemptEnd::Cancelled,
        }
    }

    /// What went wrong, in words.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        match self {
            Outcome::Error(text) | Outcome::Fail(text) => Some(text.clone()),
            Outcome::TimedOut(after) => Some(format!("timed out after {after:?}")),
            Outcome::Retry { reason, .. } => reason.clone(),
            Outcome::Done | Outcome::Release { .. } | Outcome::Cancelled => None,
        }
    }
}

/// One task's settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The task.
    pub id: TaskId,
    /// The token of the claim that took it.
    pub token: Token,
    /// How its attempt ended.
    pub outcome: Outcome,
    /// Tasks to put in the same step; none is put when the settlement is not
    /// recorded, or when one of them is refused. A refused one also makes *done*
    /// an error, or a fail where no repeating cures it.
    pub follow_ups: Vec<FollowUp>,
    /// What the handler returns for whoever asks: kept with *done*, as long as its
    /// queue says and whoever waits needs. One that is too large makes *done* a fail.
    pub result: Option<Payload>,
}

impl Settlement {
    /// A settlement without follow-ups or a result.
    #[must_use]
    pub const fn new(id: TaskId, token: Token, outcome: Outcome) -> Self {
        Settlement { id, token, outcome, follow_ups: Vec::new(), result: None }
    }
}

/// Whether the settlements of one call must be recorded one after the other, each
/// with its follow-ups, because a later one may depend on what an earlier one did:
/// a task is named twice, or two tasks have follow-ups under one id.
///
/// Otherwise all of them are recorded first and then the follow-ups are put, queue
/// by queue in the order of names.
#[must_use]
pub fn need_turns(settlements: &[Settlement]) -> bool {
    let in_order = settlements.is_sorted_by(|one, next| one.id < next.id);
    if in_order && settlements.iter().all(|settlement| settlement.follow_ups.is_empty()) {
        return false;
    }
    let (mut tasks, mut ids) = (HashSet::new(), HashMap::new());
    settlements.iter().enumerate().any(|(at, settlement)| {
        let mut named = settlement
            .follow_ups
            .iter()
            .filter_map(|follow_up| follow_up.task.id.as_deref().map(|id| (&follow_up.queue, id)));
        !tasks.insert(settlement.id) || named.any(|named| *ids.entry(named).or_insert(at) != at)
    })
}

/// The order in which the follow-ups of one call are put: the position of the
/// settlement and of its follow-up, by queue. `is_put` says of a settlement
/// whether its follow-ups are put at all.
#[must_use]
pub fn put_order(
    settlements: &[Settlement],
    is_put: impl Fn(usize) -> bool,
) -> Vec<(usize, usize)> {
    let numbered = settlements.iter().enumerate().filter(|(at, _)| is_put(*at));
    let mut order: Vec<(&QueueName, usize, usize)> = numbered
        .flat_map(|(at, settlement)| {
            let queues = settlement.follow_ups.iter().enumerate();
            queues.map(move |(nth, follow_up)| (&follow_up.queue, at, nth))
        })
        .collect();
    order.sort();
    order.into_iter().map(|(_, at, nth)| (at, nth)).collect()
}

/// Adds the answers to follow-ups, which were put in whatever order, to those of
/// their settlements.
pub fn add_follow_ups(answers: &mut [SettleAnswer], mut put: Vec<(usize, usize, PutAnswer)>) {
    put.sort_by_key(|(at, nth, _)| (*at, *nth));
    for (at, _, answer) in put {
        if let Some(SettleAnswer::Recorded { follow_ups, .. }) = answers.get_mut(at) {
            follow_ups.push(answer);
        }
    }
}

/// Where a settled task went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// Done: deleted, or kept apart, and counted.
    Done,
    /// Back in its queue, not claimed before `run_at`.
    Pending {
        /// When it runs again.
        run_at: Timestamp,
    },
    /// Failed for good.
    Failed,
    /// Deleted because an operator cancelled it.
    Cancelled,
}

/// What the store says to a settlement. None of these is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleAnswer {
    /// It is on record.
    Recorded {
        /// Where the task went.
        became: Became,
        /// One answer a follow-up. Where one is refused all of them are, and
        /// the attempt is not on record as done.
        follow_ups: Vec<PutAnswer>,
    },
    /// This token had settled this task before; nothing changed.
    AlreadyRecorded,
    /// There is no such task any more; nothing changed.
    Gone,
    /// The token is not the task's current one; nothing changed.
    LeaseLost,
}

impl SettleAnswer {
    /// Whether this call changed the store.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        matches!(self, SettleAnswer::Recorded { .. })
    }
}

/// Asks for more time for everything still open under one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The claim's token.
    pub token: Token,
    /// The lease's new length, from now.
    pub lease: Duration,
    /// How far tasks under it are, in place of what was said before. What is said of
    /// others is passed over: they ended meanwhile.
    pub progress: Vec<TaskProgress>,
}

impl Extension {
    /// More time, and no news.
    #[must_use]
    pub const fn new(token: Token, lease: Duration) -> Self {
        Extension { token, lease, progress: Vec::new() }
    }
}

/// What the store says to an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtendAnswer {
    /// The lease now lasts that long from the store's now.
    Extended {
        /// Tasks an operator cancelled: stop their handlers and settle them
        /// as cancelled.
        cancelled: Vec<TaskId>,
        /// Tasks that are gone (their subject was deleted): stop their
        /// handlers, there is nothing to settle.
        lost: Vec<TaskId>,
    },
    /// Nothing is open under this token: stop its handlers.
    LeaseLost,
}
