//! Claiming: taking tasks for one attempt, under one lease.

use std::time::Duration;

use crate::settings::lease_fault;
use crate::{
    Headers, Kept, Limits, Payload, QueueName, Result, Settings, StoreError, Task, TaskId,
    TaskSettings, Timestamp, Token, WorkerId,
};

/// Asks for tasks of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// From which queue.
    pub queue: QueueName,
    /// At most this many. A queue with `count` or `slots` gives one at a time, one with
    /// a limit what is free.
    pub max: usize,
    /// How long the lease lasts; the queue's own when not said.
    pub lease: Option<Duration>,
    /// Who claims.
    pub worker: WorkerId,
    /// Only tasks of this source.
    pub source: Option<String>,
    /// The fresh token of this claim.
    pub token: Token,
}

impl ClaimRequest {
    /// How long its lease lasts on a queue with these settings.
    ///
    /// # Errors
    /// When it asks for nothing, or for a length that no lease can have.
    pub fn lease_on(&self, settings: &Settings) -> Result<Duration> {
        if self.max == 0 {
            return Err(StoreError::invalid("a claim of 0 tasks".to_owned()));
        }
        let lease = self.lease.unwrap_or(settings.lease);
        match lease_fault(lease) {
            Some(fault) => Err(StoreError::invalid(fault)),
            None => Ok(lease),
        }
    }

    /// How many tasks it can get: one where tasks are counted, otherwise as
    /// many as asked for within the limit.
    #[must_use]
    pub fn most(&self, settings: &Settings, limits: &Limits) -> usize {
        if settings.one_at_a_time() { 1 } else { self.max.min(limits.claim_tasks) }
    }

    /// The answer while nothing was taken yet.
    #[must_use]
    pub fn nothing_yet(&self, lease: Duration, paused: bool) -> Claim {
        Claim {
            token: self.token,
            queue: self.queue.clone(),
            lease,
            tasks: Vec::new(),
            next_due: None,
            held_back: None,
            paused,
            failed: Vec::new(),
        }
    }
}

/// The error of a claim whose token stands already: a token is for one claim.
#[must_use]
pub fn token_claimed_before() -> StoreError {
    StoreError::invalid("this token has claimed before".to_owned())
}

/// The error of a task that was claimed and cannot be read: it fails for good,
/// where people look, and is not handed out.
#[must_use]
pub fn damaged(why: &str) -> String {
    format!("stored data of this task is damaged: {why}")
}

/// What a claim took. Empty is a normal answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The token that settles and extends.
    pub token: Token,
    /// The queue.
    pub queue: QueueName,
    /// How long the lease lasts from now. A duration, because the worker's
    /// clock may be wrong.
    pub lease: Duration,
    /// The tasks, in the queue's order.
    pub tasks: Vec<ClaimedTask>,
    /// When the claim is empty and the queue not paused: how long until the
    /// next unblocked task (of the asked source) falls due. Nothing at all when
    /// everything it took could not be read: more may be due.
    pub next_due: Option<Duration>,
    /// When the claim is empty although a lease of the queue ran out: how long
    /// until it is taken back. After a jump of the clock its holder has one
    /// heartbeat to say that it is alive.
    pub held_back: Option<Duration>,
    /// The queue is paused: nothing was taken.
    pub paused: bool,
    /// Tasks that failed for good by this claim: their last lease had run out,
    /// or they cannot be read. Nobody else is told.
    pub failed: Vec<TaskId>,
}

/// A task as its handler gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTask {
    /// Its number.
    pub id: TaskId,
    /// Its data.
    pub payload: Payload,
    /// What it is about.
    pub key: Option<String>,
    /// What it is counted with.
    pub group: Option<String>,
    /// Who produced it.
    pub source: Option<String>,
    /// Its priority.
    pub priority: i16,
    /// Which run this is, counted from 1.
    pub attempt: u32,
    /// Claims ever, this one included: a fencing number that never falls.
    pub claims: u32,
    /// When it was put.
    pub created_at: Timestamp,
    /// When it fell due.
    pub run_at: Timestamp,
    /// `run_at` of the attempt before.
    pub prev_run_at: Option<Timestamp>,
    /// Small facts that travel with it.
    pub headers: Headers,
    /// What holds for it in place of its queue's settings.
    pub settings: TaskSettings,
    /// What the attempts before kept for this one.
    pub checkpoint: Option<Kept>,
    /// Other live leases of its group, on queues with `count` or `slots`.
    pub concurrent: Option<u32>,
    /// Its number below the queue's `slots`, unique among the group's live
    /// leases.
    pub slot: Option<u32>,
    /// Two leases of it ran out: it may be what kills its worker, so nothing
    /// else should run beside it.
    pub alone: bool,
}

impl ClaimedTask {
    /// Whether so many leases that ran out are reason to let nothing run beside it.
    #[must_use]
    pub const fn runs_alone(expiries: u32) -> bool {
        expiries >= 2
    }

    /// How often it came back before.
    #[must_use]
    pub const fn returns(&self) -> u32 {
        self.attempt.saturating_sub(1)
    }
}

impl From<Task> for ClaimedTask {
    /// A task as its handler got it; how many others of its group ran is not kept.
    fn from(task: Task) -> Self {
        ClaimedTask {
            id: task.id,
            payload: task.payload,
            key: task.key,
            group: task.group,
            source: task.source,
            priority: task.priority,
            attempt: task.attempts,
            claims: task.claims,
            created_at: task.created_at,
            run_at: task.run_at,
            prev_run_at: task.prev_run_at,
            headers: task.headers,
            settings: task.settings,
            checkpoint: task.checkpoint,
            concurrent: None,
            slot: task.lease.and_then(|lease| lease.slot),
            alone: ClaimedTask::runs_alone(task.expiries),
        }
    }
}
