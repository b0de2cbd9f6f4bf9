//! One put, said step by step: the same builder on every way a task takes.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use gristmill_core::{
    Backoff, Headers, NewTask, Payload, PutAnswer, PutRequest, Refusal, StoreError, Timestamp,
};

use crate::draft::{Draft, TRACEPARENT, TRACESTATE, is_traceparent};
use crate::inside::{Transaction, Within};
use crate::{Accepted, Error, Mill, TaskType};

/// A task to be put, with everything that can be said about it.
///
/// [`Mill::put`] and [`Finding::put`](crate::schedule::Finding::put) make one
/// that happens when it is awaited. A task that is not taken (the queue is full,
/// the payload too large) is [`Error::Refused`] then; [`Put::answer`] has it as
/// an answer.
///
/// [`Put::of`] and [`Put::raw`] make one that goes nowhere by itself, for
/// whatever takes tasks: [`Mill::put_all`],
/// [`Context::follow_up`](crate::Context::follow_up),
/// [`NewSchedule::puts`](crate::schedule::NewSchedule::puts).
///
/// ```
/// # use gristmill::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # use std::time::Duration;
/// # #[derive(Serialize, Deserialize)]
/// # struct Remind { who: String }
/// # impl TaskType for Remind { const QUEUE: &'static str = "reminders"; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gristmill::Error> {
/// # let mill = Mill::open("memory:").await?;
/// # mill.declare::<Remind>().await?;
/// let minute = Duration::from_secs(60);
/// mill.put(Remind { who: "ada".into() }).key("ada").delay(minute).await?;
/// let people = ["eve", "bob"].map(|who| Remind { who: who.into() });
/// mill.put_all(people.map(|remind| Put::of(remind).priority(5))).run().await?;
/// # assert_eq!(mill.inspect().queue("reminders").await?.ready, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a put happens when it is awaited or given to what takes tasks"]
pub struct Put<To = Mill> {
    to: To,
    draft: Result<Draft, Error>,
}

/// A [`Put`] that goes nowhere by itself.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Unbound;

/// What can be put: a value of a [`TaskType`], or a [`Put`] with more said about
/// it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    label = "not a task",
    note = "implement `gristmill::TaskType` for it (its values must be `Serialize` and \
            `DeserializeOwned`), or build the put with `Put::of` or `Put::raw`"
)]
pub trait IntoPut: sealed::Sealed {
    /// The put.
    fn into_put(self) -> Put<Unbound>;
}

impl<T: TaskType> IntoPut for T {
    fn into_put(self) -> Put<Unbound> {
        Put::of(self)
    }
}

impl<To> IntoPut for Put<To> {
    fn into_put(self) -> Put<Unbound> {
        Put { to: Unbound, draft: self.draft }
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T: crate::TaskType> Sealed for T {}
    impl<To> Sealed for super::Put<To> {}
}

/// Where a put that can be awaited goes.
pub trait Destination: Send + 'static {
    #[doc(hidden)]
    fn mill(&self) -> &Mill;

    /// What became of it.
    #[doc(hidden)]
    fn hear(&self, _answer: &Result<PutAnswer, Error>) {}
}

impl Destination for Mill {
    fn mill(&self) -> &Mill {
        self
    }
}

impl Put<Unbound> {
    /// A typed task.
    pub fn of<T: TaskType>(task: T) -> Self {
        Put { to: Unbound, draft: Draft::typed(&task) }
    }

    /// A payload for a queue by name.
    pub fn raw(queue: &str, payload: Payload) -> Self {
        let draft = Draft::raw(queue.to_owned().into(), NewTask::new(payload));
        Put { to: Unbound, draft: Ok(draft) }
    }

    pub(crate) fn goes_to<To>(self, to: To) -> Put<To> {
        Put { to, draft: self.draft }
    }

    pub(crate) fn into_draft(self) -> Result<Draft, Error> {
        self.draft
    }
}

impl<To> Put<To> {
    fn with(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Ok(draft) = &mut self.draft {
            change(draft);
        }
        self
    }

    /// What the task is about, instead of [`TaskType::key`].
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|draft| draft.task.key = Some(key.into()))
    }

    /// What it is counted with while it runs.
    pub fn group(self, group: impl Into<String>) -> Self {
        self.with(|draft| draft.task.group = Some(group.into()))
    }

    /// Who produced it.
    pub fn source(self, source: impl Into<String>) -> Self {
        self.with(|draft| draft.task.source = Some(source.into()))
    }

    /// Lower runs first.
    pub fn priority(self, priority: i16) -> Self {
        self.with(|draft| draft.task.priority = priority)
    }

    /// Not before this much time has passed. Excludes [`Put::at`].
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|draft| draft.delay = Some(delay))
    }

    /// Not before this instant. Excludes [`Put::delay`].
    pub fn at(self, at: Timestamp) -> Self {
        self.with(|draft| draft.at = Some(at))
    }

    /// Your own id: a repeat of this put within the queue's window is
    /// recognised by it, so a put whose answer was lost can be repeated.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.with(|draft| draft.task.id = Some(id.into()))
    }

    /// Small facts that travel with the task, instead of those said before.
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|draft| draft.task.headers = headers)
    }

    /// One more small fact that travels with the task.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|draft| {
            draft.task.headers.insert(name.into(), value.into());
        })
    }

    /// How long the task's handler may take, instead of the queue's `timeout`. Such a
    /// task comes to a batch handler by itself.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|draft| draft.task.settings.set_timeout(timeout))
    }

    /// How many attempts the task has before it fails, instead of the queue's
    /// `max_attempts`; `None` is without limit.
    pub fn max_attempts(self, max_attempts: impl Into<Option<u32>>) -> Self {
        self.with(|draft| draft.task.settings.set_max_attempts(max_attempts.into()))
    }

    /// How long the task waits after an error, instead of the queue's `backoff`.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|draft| draft.task.settings.set_backoff(backoff))
    }

    /// Somebody waits for the task's end ([`Mill::wait`]): it is kept for ten minutes,
    /// whatever the queue says. Of a duplicate it is the end of the task that stands.
    pub fn wanted(self) -> Self {
        self.with(|draft| draft.task.settings.set_wanted())
    }

    /// The W3C trace context this put belongs to: the handler's span and
    /// context show it. One that is not well-formed is left out, as the
    /// standard has it.
    pub fn traceparent(self, trace: &str) -> Self {
        if !is_traceparent(trace) {
            tracing::debug!(trace, "not a W3C traceparent");
            return self;
        }
        self.header(TRACEPARENT, trace)
    }

    /// What vendors add to the trace context. Say [`Put::traceparent`] first:
    /// without a parent it means nothing and is left out.
    pub fn tracestate(self, state: &str) -> Self {
        self.with(|draft| {
            if draft.task.headers.contains_key(TRACEPARENT) && !state.is_empty() {
                draft.task.headers.insert(TRACESTATE.to_owned(), state.to_owned());
            }
        })
    }
}

impl<To: Destination> Put<To> {
    pub(crate) fn mill(&self) -> &Mill {
        self.to.mill()
    }

    /// Puts inside your own transaction: the task stands if and only if it
    /// commits. Await it, or, in a transaction of SQLite, say [`Within::now`].
    ///
    /// ```no_run
    /// # use gristmill::prelude::*;
    /// # use gristmill::sqlite::rusqlite;
    /// # fn change<T: TaskType>(
    /// #     mill: &Mill, db: &mut rusqlite::Connection, task: T,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut transaction = db.transaction()?;
    /// // your own statements
    /// let put = mill.put(task).priority(1).within(&mut transaction).now()?;
    /// transaction.commit()?;
    /// put.committed(); // workers hear of it at once
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// What fits: see [`Transaction`].
    pub fn within<Tx: Transaction>(self, transaction: Tx) -> Within<Tx, Accepted> {
        let request = self.draft.and_then(|draft| {
            let (queue, task) = draft.finish_for(self.to.mill())?;
            Ok(vec![PutRequest { queue, tasks: vec![task], atomic: false }])
        });
        let mill = self.to.mill().clone();
        let to = self.to;
        Within::put(mill, transaction, request, move |reports| {
            let answers = reports.into_iter().flat_map(|report| report.answers);
            let answer = one(answers.into_iter());
            to.hear(&answer);
            Ok(Accepted::try_from(answer?)?)
        })
    }

    /// Puts, and gives the whole answer: a refused task is one of the answers
    /// here. For those who have a plan for it, such as waiting for room.
    ///
    /// # Errors
    /// When nobody declared the queue, the task has no form, or the store
    /// cannot answer.
    pub async fn answer(self) -> Result<PutAnswer, Error> {
        let answer = ask(self.to.mill(), self.draft).await;
        self.to.hear(&answer);
        answer
    }
}

async fn ask(mill: &Mill, draft: Result<Draft, Error>) -> Result<PutAnswer, Error> {
    let (queue, task) = draft?.finish_for(mill)?;
    let request = PutRequest { queue, tasks: vec![task], atomic: false };
    one(mill.store().put(request).await?.answers.into_iter())
}

/// The answer of a put of one task.
fn one(mut answers: impl Iterator<Item = PutAnswer>) -> Result<PutAnswer, Error> {
    match answers.next() {
        // Nobody declared it: a mistake of the program's, which no plan
        // mends.
        Some(PutAnswer::Refused(Refusal::UnknownQueue { name, suggestion })) => {
            Err(StoreError::UnknownQueue { name, suggestion }.into())
        }
        Some(answer) => Ok(answer),
        None => Err(StoreError::corrupt("a put without an answer".to_owned()).into()),
    }
}

impl<To: Destination + Sync> IntoFuture for Put<To> {
    type Output = Result<Accepted, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(Accepted::try_from(self.answer().await?)?) })
    }
}
