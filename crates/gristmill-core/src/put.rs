//! Putting: what goes in, and the answer each task gets.

use std::collections::HashMap;
use std::time::Duration;

use crate::{Headers, Limits, Payload, QueueName, TaskId, TaskSettings, Timestamp};

/// When a task may first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// As soon as a worker is free.
    #[default]
    Now,
    /// Not before this instant.
    At(Timestamp),
    /// Not before this much time has passed, by the store's clock.
    After(Duration),
}

impl Start {
    /// The first instant at which the task may run.
    #[must_use]
    pub fn run_at(self, now: Timestamp) -> Timestamp {
        match self {
            Start::Now => now,
            Start::At(at) => at.clamp(Timestamp::EPOCH, Timestamp::MAX),
            Start::After(delay) => now.after(delay),
        }
    }
}

/// A task to be put.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    /// Its data.
    pub payload: Payload,
    /// What it is about: the unit of deduplication and mutual exclusion.
    pub key: Option<String>,
    /// What it is counted with while it runs (default: the whole queue).
    pub group: Option<String>,
    /// Who produced it.
    pub source: Option<String>,
    /// Lower runs first.
    pub priority: i16,
    /// When it may first run.
    pub start: Start,
    /// The caller's own id: a repeat of this put is recognised by it.
    pub id: Option<String>,
    /// Small facts that travel with it.
    pub headers: Headers,
    /// What holds for it in place of its queue's settings.
    pub settings: TaskSettings,
}

impl NewTask {
    /// A task with this payload and nothing else said.
    #[must_use]
    pub fn new(payload: Payload) -> Self {
        NewTask { payload, ..NewTask::default() }
    }
}

/// Tasks for one queue, put in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutRequest {
    /// Where they go.
    pub queue: QueueName,
    /// The tasks.
    pub tasks: Vec<NewTask>,
    /// All or nothing: a duplicate or refused task undoes its neighbours.
    pub atomic: bool,
}

/// A task put together with a settlement, in one atomic step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowUp {
    /// Where it goes.
    pub queue: QueueName,
    /// The task.
    pub task: NewTask,
}

/// The header of a follow-up that says which task put it.
pub const PARENT: &str = "parent";

impl FollowUp {
    /// The same, saying whose it is, where its own headers leave room for that and say
    /// nothing else under the name.
    #[must_use]
    pub fn put_by(mut self, parent: TaskId, limits: &Limits) -> Self {
        let headers = &mut self.task.headers;
        let bytes: usize = headers.iter().map(|(name, said)| name.len() + said.len()).sum();
        let parent = parent.to_string();
        if bytes + PARENT.len() + parent.len() <= limits.headers_bytes {
            headers.entry(PARENT.to_owned()).or_insert(parent);
        }
        self
    }
}

/// What became of one task of a put.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the task may have been refused"]
pub enum PutAnswer {
    /// It stands in the store.
    Enqueued {
        /// Its number.
        id: TaskId,
    },
    /// A task like it stands already (by key), or stood (by caller's id).
    Duplicate {
        /// The standing one.
        id: TaskId,
        /// When that one may run; unknown once it is gone.
        run_at: Option<Timestamp>,
        /// Who produced that one.
        source: Option<String>,
    },
    /// The standing task of its key took over its data.
    Replaced {
        /// The standing one.
        id: TaskId,
    },
    /// It was not taken.
    Refused(Refusal),
}

impl PutAnswer {
    /// The task that now stands for this put, if any.
    #[must_use]
    pub const fn id(&self) -> Option<TaskId> {
        match self {
            PutAnswer::Enqueued { id }
            | PutAnswer::Duplicate { id, .. }
            | PutAnswer::Replaced { id } => Some(*id),
            PutAnswer::Refused(_) => None,
        }
    }

    /// Whether a new task was stored.
    #[must_use]
    pub const fn is_enqueued(&self) -> bool {
        matches!(self, PutAnswer::Enqueued { .. })
    }
}

/// Why a task was not taken. One sentence each, fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The queue holds as many pending tasks as it may.
    #[error("the queue is full: {capacity} tasks are pending")]
    QueueFull {
        /// The queue's capacity.
        capacity: u64,
    },
    /// The whole store holds as much as it may (memory only).
    #[error("the store is full: it holds {tasks} tasks and {bytes} bytes")]
    StoreFull {
        /// Tasks in it.
        tasks: u64,
        /// Bytes of payload in it.
        bytes: usize,
    },
    /// The payload is over the store's limit.
    #[error("the payload has {bytes} bytes and {limit} are allowed")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The payload does not fit the queue's contract.
    #[error("the payload does not fit the contract: {0}")]
    DoesNotFit(String),
    /// Nobody declared this queue.
    #[error("there is no queue '{name}'{}", match suggestion { Some(s) => format!("; did you mean '{s}'?"), None => String::new() })]
    UnknownQueue {
        /// What was asked for.
        name: String,
        /// A declared queue with a similar name.
        suggestion: Option<String>,
    },
    /// The queue is bound to a table, and no row there has this key.
    #[error("{table} has no row with {column} = '{key}'{}", match spelling { Some(s) => format!("; the column's spelling of this key is '{s}'"), None => String::new() })]
    NoSuchSubject {
        /// The bound table.
        table: String,
        /// The bound column.
        column: String,
        /// The task's key.
        key: String,
        /// How the column writes the value that this key means. Another spelling
        /// would not be found when the row goes.
        spelling: Option<String>,
    },
    /// The queue is bound to a table that is not there (any more).
    #[error("the queue is bound to table {table}, which does not exist")]
    SubjectTableGone {
        /// The missing table.
        table: String,
    },
    /// The caller's id was used before for another payload.
    #[error("this id was used for task {first} with another payload")]
    IdReused {
        /// The task that was put under it.
        first: TaskId,
    },
    /// A neighbour in an atomic put has its key or its id: one of them is too many.
    #[error("task {of} put in the same step has the same key or id")]
    Twin {
        /// The neighbour's position among them, counted from 0.
        of: usize,
    },
    /// A field of the task cannot be stored.
    #[error("{0}")]
    Invalid(String),
    /// It was fine itself, but a neighbour in an atomic put, or another
    /// follow-up of the same settlement, was not.
    #[error("not put because task {because} put in the same step was not")]
    Undone {
        /// The neighbour's position among them, counted from 0.
        because: usize,
    },
}

impl Refusal {
    /// A short word for programs: stable, unlike the sentence.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            // One word for both: the caller's next step is the same.
            Refusal::QueueFull { .. } | Refusal::StoreFull { .. } => "queue_full",
            Refusal::PayloadTooLarge { .. } => "payload_too_large",
            Refusal::DoesNotFit(_) => "does_not_fit",
            Refusal::UnknownQueue { .. } => "unknown_queue",
            Refusal::NoSuchSubject { .. } => "no_such_subject",
            Refusal::SubjectTableGone { .. } => "subject_table_gone",
            Refusal::IdReused { .. } => "id_reused",
            Refusal::Twin { .. } => "twin",
            Refusal::Invalid(_) => "invalid",
            Refusal::Undone { .. } => "undone",
        }
    }
}

/// The answers of one put, in the order of its tasks. They come true together
/// or, on an error, not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutReport {
    /// One answer a task.
    pub answers: Vec<PutAnswer>,
}

impl PutReport {
    /// How many tasks were enqueued.
    #[must_use]
    pub fn enqueued(&self) -> usize {
        self.answers.iter().filter(|a| a.is_enqueued()).count()
    }

    /// Why the first of the refused tasks was not taken, if any was.
    #[must_use]
    pub fn first_refusal(&self) -> Option<&Refusal> {
        self.answers.iter().find_map(|answer| match answer {
            PutAnswer::Refused(why) => Some(why),
            _ => None,
        })
    }

    /// How many were duplicates of standing tasks.
    #[must_use]
    pub fn duplicates(&self) -> usize {
        self.answers.iter().filter(|a| matches!(a, PutAnswer::Duplicate { .. })).count()
    }

    /// The answers an atomic put gives when it is undone: the faults stay,
    /// what was fine is refused for the first fault's sake. A fault that names a
    /// neighbour says which: no task has, or may one day have, the neighbour's
    /// number.
    #[must_use]
    pub fn undone(mut self) -> Self {
        let fresh: HashMap<TaskId, usize> = (self.answers.iter().enumerate())
            .filter(|(_, answer)| answer.is_enqueued())
            .filter_map(|(at, answer)| Some((answer.id()?, at)))
            .collect();
        for answer in &mut self.answers {
            let named = match answer {
                PutAnswer::Duplicate { id, .. } => Some(&*id),
                PutAnswer::Refused(Refusal::IdReused { first }) => Some(&*first),
                _ => None,
            };
            if let Some(neighbour) = named.and_then(|id| fresh.get(id)) {
                *answer = PutAnswer::Refused(Refusal::Twin { of: *neighbour });
            }
        }
        let fault = self
            .answers
            .iter()
            .position(|a| matches!(a, PutAnswer::Duplicate { .. } | PutAnswer::Refused(_)));
        if let Some(because) = fault {
            for answer in &mut self.answers {
                if matches!(answer, PutAnswer::Enqueued { .. } | PutAnswer::Replaced { .. }) {
                    *answer = PutAnswer::Refused(Refusal::Undone { because });
                }
            }
        }
        self
    }

    /// Whether an atomic put with these answers has to be undone.
    #[must_use]
    pub fn has_fault(&self) -> bool {
        self.answers
            .iter()
            .any(|a| matches!(a, PutAnswer::Duplicate { .. } | PutAnswer::Refused(_)))
    }
}
