//! The task as the store shows it: one stored unit of work and its life so far.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{Kept, Payload, ProgressView, QueueName, TaskSettings, Timestamp, Unique, WorkerId};

/// A task's number: increasing within a store, opaque outside it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub i64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('#').unwrap_or(text).parse() {
            Ok(id) if id > 0 => Ok(TaskId(id)),
            _ => Err(format!("'{text}' is not a task id: it is a number like 42")),
        }
    }
}

/// Small facts that travel with a task (trace context and the like).
pub type Headers = BTreeMap<String, String>;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Waiting for a claim: due (`ready`), ahead (`delayed`) or behind another
    /// task of its key (`blocked`).
    Pending,
    /// Under a lease.
    Processing,
    /// Given up; waits for a person.
    Failed,
    /// Finished or resolved and kept for reading only (`keep_done`).
    Done,
}

impl State {
    /// All states.
    pub const ALL: [State; 4] = [State::Pending, State::Processing, State::Failed, State::Done];

    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Processing => "processing",
            State::Failed => "failed",
            State::Done => "done",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|s| s.as_str() == name).ok_or_else(|| {
            format!("'{name}' is not a state: use pending, processing, failed or done")
        })
    }
}

/// How an attempt ended, for the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEnd {
    /// The handler succeeded (seen only on kept tasks).
    Done,
    /// The handler returned an error or panicked.
    Error,
    /// The handler asked for another run.
    Retry,
    /// The handler gave up for good.
    Fail,
    /// The task was given back.
    Release,
    /// The timeout passed: its own, or its queue's.
    TimedOut,
    /// The lease ran out: the worker died, hung or was cut off.
    Expired,
    /// An operator cancelled it.
    Cancelled,
}

impl AttemptEnd {
    /// All ends.
    pub const ALL: [AttemptEnd; 8] = [
        AttemptEnd::Done,
        AttemptEnd::Error,
        AttemptEnd::Retry,
        AttemptEnd::Fail,
        AttemptEnd::Release,
        AttemptEnd::TimedOut,
        AttemptEnd::Expired,
        AttemptEnd::Cancelled,
    ];

    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AttemptEnd::Done => "done",
            AttemptEnd::Error => "error",
            AttemptEnd::Retry => "retry",
            AttemptEnd::Fail => "fail",
            AttemptEnd::Release => "release",
            AttemptEnd::TimedOut => "timed_out",
            AttemptEnd::Expired => "expired",
            AttemptEnd::Cancelled => "cancelled",
        }
    }
}

impl FromStr for AttemptEnd {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|e| e.as_str() == name)
            .ok_or_else(|| format!("'{name}' is not the end of an attempt"))
    }
}

/// One attempt of a task's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Who ran it.
    pub worker: WorkerId,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When it ended, by the store's clock.
    pub ended_at: Timestamp,
    /// How it ended.
    pub end: AttemptEnd,
    /// What went wrong, cut to 4 KiB.
    pub error: Option<String>,
}

/// Who holds a task, as readers may see it. The token is left out: whoever
/// reads it could settle in the holder's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// The holder.
    pub worker: WorkerId,
    /// When the lease ends unless it is extended.
    pub until: Timestamp,
    /// The slot within its group, on queues with slots.
    pub slot: Option<u32>,
    /// How far it is, as its handler said last. It ends with the lease.
    pub progress: Option<ProgressView>,
}

/// Why an operator moved a task, and who it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The reason.
    pub text: String,
    /// Who gave it.
    pub by: String,
}

/// One stored task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// Its queue.
    pub queue: QueueName,
    /// Its data.
    pub payload: Payload,
    /// What it is about.
    pub key: Option<String>,
    /// What it is counted with while it runs.
    pub group: Option<String>,
    /// Who produced it.
    pub source: Option<String>,
    /// Lower runs first.
    pub priority: i16,
    /// Where it stands.
    pub state: State,
    /// Pending, but behind another task of its key.
    pub blocked: bool,
    /// The uniqueness it was put under, for life.
    pub unique: Unique,
    /// Runs since the put or the last retry by an operator.
    pub attempts: u32,
    /// Claims ever; never falls.
    pub claims: u32,
    /// Leases that ran out since the put or the last retry by an operator.
    pub expiries: u32,
    /// When it was put.
    pub created_at: Timestamp,
    /// Not claimed before.
    pub run_at: Timestamp,
    /// `run_at` of the attempt before.
    pub prev_run_at: Option<Timestamp>,
    /// When it was last claimed.
    pub claimed_at: Option<Timestamp>,
    /// Who holds it now.
    pub lease: Option<LeaseView>,
    /// An operator asked for its end; its worker hears at the next heartbeat.
    pub cancel_requested: bool,
    /// When it failed for good.
    pub failed_at: Option<Timestamp>,
    /// The last error.
    pub error: Option<String>,
    /// The last attempts that did not end in done, oldest first.
    pub history: Vec<Attempt>,
    /// The last operator's reason.
    pub note: Option<Note>,
    /// Who resolved it by hand.
    pub resolved_by: Option<String>,
    /// When it was resolved or done, on kept tasks.
    pub resolved_at: Option<Timestamp>,
    /// Small facts that travel with it.
    pub headers: Headers,
    /// What holds for it in place of its queue's settings.
    pub settings: TaskSettings,
    /// What its handler keeps for the next attempt.
    pub checkpoint: Option<Kept>,
    /// What of it the store cannot read, in words. Everything else of it is
    /// shown; it is not handed out, but fails with this reason when its turn
    /// comes.
    pub damaged: Option<String>,
}

impl Task {
    /// A task as it stands right after its put, without options. Whoever shows one
    /// that has gone further sets the rest.
    #[must_use]
    pub fn new(id: TaskId, queue: QueueName, payload: Payload, created_at: Timestamp) -> Self {
        Task {
            id,
            queue,
            payload,
            key: None,
            group: None,
            source: None,
            priority: 0,
            state: State::Pending,
            blocked: false,
            unique: Unique::default(),
            attempts: 0,
            claims: 0,
            expiries: 0,
            created_at,
            run_at: created_at,
            prev_run_at: None,
            claimed_at: None,
            lease: None,
            cancel_requested: false,
            failed_at: None,
            error: None,
            history: Vec::new(),
            note: None,
            resolved_by: None,
            resolved_at: None,
            headers: Headers::new(),
            settings: TaskSettings::default(),
            checkpoint: None,
            damaged: None,
        }
    }

    /// How often it came back: attempts before the current or last one.
    #[must_use]
    pub const fn returns(&self) -> u32 {
        self.attempts.saturating_sub(1)
    }
}
