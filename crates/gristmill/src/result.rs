//! What came of a task: asked for by its number, or waited for.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use gristmill_core::{Ending, StoreError, TaskId};
use tokio::time::Instant;

use crate::put::Destination;
use crate::{Error, Mill, Put, TaskPayload};

/// Who waits looks by itself this often: a wake-up is only a hint.
const LOOK: Duration = Duration::from_secs(1);
/// ... and this often while the store cannot be asked.
const AWAY: Duration = Duration::from_millis(100);

/// What came of a task.
///
/// A task's end is known for ten minutes where somebody waits for it
/// ([`Put::wait`], [`Put::wanted`]), and as long as its queue says
/// (`keep_result`, `keep_done`). A failed task tells as long as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskResult<T> {
    /// It is done, and this is what its handler returned.
    Value(T),
    /// It is done; its handler returned nothing.
    Done,
    /// It failed for good, with this as its last error. An operator may retry it.
    Failed(String),
    /// An operator cancelled it.
    Cancelled,
    /// It had failed, and an operator discarded it.
    Discarded,
    /// It has not ended (yet).
    Open,
    /// There is no such task, or it ended and nobody kept what came of it.
    NotKnown,
}

impl<T> TaskResult<T> {
    /// What its handler returned.
    pub fn value(self) -> Option<T> {
        match self {
            TaskResult::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is done, with a value or without one.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, TaskResult::Value(_) | TaskResult::Done)
    }

    /// Whether it has not ended.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, TaskResult::Open)
    }
}

impl<T: TaskPayload> TaskResult<T> {
    fn of(ending: Ending) -> Result<Self, Error> {
        Ok(match ending {
            Ending::Open { .. } => TaskResult::Open,
            Ending::Done { value: Some(value) } => TaskResult::Value(T::from_payload(&value)?),
            Ending::Done { value: None } => TaskResult::Done,
            Ending::Failed { error } => TaskResult::Failed(error),
            Ending::Cancelled => TaskResult::Cancelled,
            Ending::Discarded => TaskResult::Discarded,
            _ => TaskResult::NotKnown,
        })
    }
}

impl Mill {
    /// What came of a task, now.
    ///
    /// # Errors
    /// When what its handler returned is not a `T`, or the store cannot answer.
    pub async fn result<T: TaskPayload>(&self, id: TaskId) -> Result<TaskResult<T>, Error> {
        TaskResult::of(self.ending(id).await?)
    }

    /// Waits for a task's end, for at most this long; [`TaskResult::Open`] when it has
    /// not come. The task's put must have said that somebody waits ([`Put::wanted`]),
    /// or its queue must keep what comes of tasks: else a task that is done leaves
    /// nothing behind, and the answer is [`TaskResult::NotKnown`].
    ///
    /// # Errors
    /// As [`Mill::result`]. A store that is away is asked again until the time is up.
    pub async fn wait<T: TaskPayload>(
        &self,
        id: TaskId,
        limit: Duration,
    ) -> Result<TaskResult<T>, Error> {
        TaskResult::of(self.wait_ending(id, limit).await?)
    }

    /// As [`Mill::wait`], with the value as it was returned.
    ///
    /// # Errors
    /// As [`Mill::wait`].
    pub async fn wait_ending(&self, id: TaskId, limit: Duration) -> Result<Ending, Error> {
        let begun = Instant::now();
        loop {
            // Before the look: what happens in between is not missed.
            let mark = self.store().mark();
            let looked = self.ending(id).await;
            let left = limit.saturating_sub(begun.elapsed());
            match looked {
                Ok(ending) if !ending.is_open() || left.is_zero() => return Ok(ending),
                Ok(_) => {}
                Err(Error::Store(StoreError::Busy(_) | StoreError::Unavailable(_)))
                    if !left.is_zero() =>
                {
                    tokio::time::sleep(AWAY.min(left)).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            if self.store().wait_ended(mark, LOOK.min(left)).await.is_err() {
                tokio::time::sleep(AWAY.min(left)).await;
            }
        }
    }

    async fn ending(&self, id: TaskId) -> Result<Ending, Error> {
        let ending = self.store().endings(&[id]).await?.pop();
        Ok(ending.ok_or_else(|| StoreError::corrupt("an ending is missing".to_owned()))?)
    }
}

/// A put that waits for the task's end: await it ([`Put::wait`]).
#[derive(Debug)]
#[must_use = "nothing is put before it is awaited"]
pub struct Wait<To, T> {
    put: Put<To>,
    limit: Duration,
    returned: PhantomData<fn() -> T>,
}

impl<To: Destination> Put<To> {
    /// Puts, and waits for the task's end for at most this long; a duplicate waits for
    /// the task that stands. What the handler returned must be a `T`.
    ///
    /// The task's end is kept for ten minutes, so that whoever did not see it in time
    /// can ask for it again ([`Mill::result`]); await the put by itself and say
    /// [`Put::wanted`] to know the task's number before.
    ///
    /// ```
    /// # use gristmill::prelude::*;
    /// # use gristmill::TaskResult;
    /// # use std::time::Duration;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Sum(Vec<u64>);
    /// # impl TaskType for Sum { const QUEUE: &'static str = "sums"; }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mill = Mill::open("memory:").await?;
    /// # mill.declare::<Sum>().await?;
    /// let sums = |Sum(all): Sum| async move { Json(all.iter().sum::<u64>()) };
    /// let worker = Worker::new(&mill).handle(sums).start().await?;
    /// let sum = mill.put(Sum(vec![1, 2])).wait::<u64>(Duration::from_secs(30)).await?;
    /// assert_eq!(sum, TaskResult::Value(3));
    /// # worker.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait<T: TaskPayload>(self, limit: Duration) -> Wait<To, T> {
        Wait { put: self.wanted(), limit, returned: PhantomData }
    }
}

impl<To: Destination + Sync, T: TaskPayload + Send> IntoFuture for Wait<To, T> {
    type Output = Result<TaskResult<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mill = self.put.mill().clone();
            let id = self.put.await?.id();
            mill.wait(id, self.limit).await
        })
    }
}
