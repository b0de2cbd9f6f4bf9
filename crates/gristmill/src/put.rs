//! One put, said step by step.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use gristmill_core::{
    Headers, NewTask, Payload, PutAnswer, PutRequest, QueueName, Refusal, Start, StoreError,
    TaskId, Timestamp,
};

use crate::{Error, Mill, TaskType};

/// The header that carries a W3C trace context.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// The header that carries what vendors add to it.
pub(crate) const TRACESTATE: &str = "tracestate";

/// A payload with everything that can be said about it.
#[derive(Debug, Clone)]
pub struct RawTask {
    queue: String,
    task: NewTask,
    delay: Option<Duration>,
    at: Option<Timestamp>,
}

impl RawTask {
    /// A typed task.
    ///
    /// # Errors
    /// When the value has no form as a payload.
    pub fn typed<T: TaskType>(task: &T) -> Result<Self, Error> {
        let mut raw = Self::raw(T::QUEUE, task.to_payload()?);
        raw.task.key = task.key();
        Ok(raw)
    }

    /// A payload for a queue.
    #[must_use]
    pub fn raw(queue: &str, payload: Payload) -> Self {
        let task = NewTask::new(payload);
        RawTask { queue: queue.to_owned(), task, delay: None, at: None }
    }

    /// The queue it goes to.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// The task as the store takes it.
    ///
    /// # Errors
    /// When both a delay and a start time were given.
    pub fn into_new_task(self) -> Result<NewTask, Error> {
        let start = match (self.delay, self.at) {
            (Some(_), Some(_)) => return Err(Error::TwoStarts),
            (Some(delay), None) => Start::After(delay),
            (None, Some(at)) => Start::At(at),
            (None, None) => Start::Now,
        };
        Ok(NewTask { start, ..self.task })
    }
}

/// A put that happens when it is awaited. A task that is not taken (the queue is
/// full, the payload too large) is [`Error::Refused`]; [`Put::answer`] has it as
/// an answer.
#[derive(Debug)]
#[must_use = "a put happens when it is awaited"]
pub struct Put {
    mill: Mill,
    task: Result<RawTask, Error>,
}

impl Put {
    pub(crate) fn new(mill: Mill, task: Result<RawTask, Error>) -> Self {
        Put { mill, task }
    }

    fn with(mut self, change: impl FnOnce(&mut RawTask)) -> Self {
        if let Ok(task) = &mut self.task {
            change(task);
        }
        self
    }

    /// What the task is about.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|raw| raw.task.key = Some(key.into()))
    }

    /// What it is counted with while it runs.
    pub fn group(self, group: impl Into<String>) -> Self {
        self.with(|raw| raw.task.group = Some(group.into()))
    }

    /// Who produced it.
    pub fn source(self, source: impl Into<String>) -> Self {
        self.with(|raw| raw.task.source = Some(source.into()))
    }

    /// Lower runs first.
    pub fn priority(self, priority: i16) -> Self {
        self.with(|raw| raw.task.priority = priority)
    }

    /// Not before this much time has passed. Excludes [`Put::at`].
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|raw| raw.delay = Some(delay))
    }

    /// Not before this instant. Excludes [`Put::delay`].
    pub fn at(self, at: Timestamp) -> Self {
        self.with(|raw| raw.at = Some(at))
    }

    /// Your own id: a repeat of this put within the queue's window is
    /// recognised by it, so a put whose answer was lost can be repeated.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.with(|raw| raw.task.id = Some(id.into()))
    }

    /// Small facts that travel with the task.
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|raw| raw.task.headers = headers)
    }

    /// The W3C trace context this put belongs to: the handler's span and
    /// context show it. One that is not well-formed is left out, as the
    /// standard has it.
    pub fn traceparent(self, trace: &str) -> Self {
        if !is_traceparent(trace) {
            tracing::debug!(trace, "not a W3C traceparent");
            return self;
        }
        self.with(|raw| {
            raw.task.headers.insert(TRACEPARENT.to_owned(), trace.to_owned());
        })
    }

    /// What vendors add to the trace context. Say [`Put::traceparent`] first:
    /// without a parent it means nothing and is left out.
    pub fn tracestate(self, state: &str) -> Self {
        self.with(|raw| {
            if raw.task.headers.contains_key(TRACEPARENT) && !state.is_empty() {
                raw.task.headers.insert(TRACESTATE.to_owned(), state.to_owned());
            }
        })
    }
}

/// Whether this is `version-trace-parent-flags`, in lower-case hex.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    parts.len() >= 4
        && parts.iter().zip([2, 32, 16, 2]).all(|(part, len)| part.len() == len)
        && parts.iter().take(4).all(|part| part.chars().all(hex))
}

/// What became of a put that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It stands in the store.
    Enqueued {
        /// Its number.
        id: TaskId,
    },
    /// A task like it stands already (by key), or stood (by your id).
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
}

impl Accepted {
    /// The task that stands for this put.
    #[must_use]
    pub const fn id(&self) -> TaskId {
        match self {
            Accepted::Enqueued { id }
            | Accepted::Duplicate { id, .. }
            | Accepted::Replaced { id } => *id,
        }
    }

    /// Whether a new task was stored.
    #[must_use]
    pub const fn is_enqueued(&self) -> bool {
        matches!(self, Accepted::Enqueued { .. })
    }
}

impl TryFrom<PutAnswer> for Accepted {
    type Error = Refusal;

    fn try_from(answer: PutAnswer) -> Result<Self, Refusal> {
        Ok(match answer {
            PutAnswer::Enqueued { id } => Accepted::Enqueued { id },
            PutAnswer::Duplicate { id, run_at, source } => {
                Accepted::Duplicate { id, run_at, source }
            }
            PutAnswer::Replaced { id } => Accepted::Replaced { id },
            PutAnswer::Refused(why) => return Err(why),
        })
    }
}

impl Put {
    /// Puts, and gives the whole answer: a refused task is one of the answers
    /// here. For those who have a plan for it, such as waiting for room.
    ///
    /// # Errors
    /// When nobody declared the queue, the task has no form, or the store
    /// cannot answer.
    pub async fn answer(self) -> Result<PutAnswer, Error> {
        let raw = self.task?;
        let queue = QueueName::new(&raw.queue)?;
        let tasks = vec![raw.into_new_task()?];
        let report = self.mill.store().put(PutRequest { queue, tasks, atomic: false }).await?;
        match report.answers.into_iter().next() {
            // Nobody declared it: a mistake of the program's, which no plan
            // mends.
            Some(PutAnswer::Refused(Refusal::UnknownQueue { name, suggestion })) => {
                Err(StoreError::UnknownQueue { name, suggestion }.into())
            }
            Some(answer) => Ok(answer),
            None => Err(StoreError::Corrupt("a put without an answer".to_owned()).into()),
        }
    }
}

impl IntoFuture for Put {
    type Output = Result<Accepted, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(Accepted::try_from(self.answer().await?)?) })
    }
}
