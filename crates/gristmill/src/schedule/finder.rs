//! Finders: what they are given, and the numbers kept of a run.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gristmill_core::{PutReport, QueueName, ScheduleName, Timestamp};
use gristmill_sqlite::WakeGuard;
use gristmill_sqlite::rusqlite::Transaction;

use crate::{Accepted, Error, Mill, Put, TaskType};

/// A finder: its code with its types forgotten (the error is in words), and how
/// long a run may take.
#[derive(Clone)]
pub(super) struct Find {
    pub(super) run: Arc<dyn Fn(Finding) -> FindFuture + Send + Sync>,
    pub(super) timeout: Duration,
}

/// One run of it.
pub(super) type FindFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

pub(super) fn boxed<F, R, E>(find: F, timeout: Duration) -> Find
where
    F: Fn(Finding) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let run = Arc::new(move |finding| -> FindFuture {
        let run = find(finding);
        Box::pin(async move { run.await.map_err(|error| error.to_string()) })
    });
    Find { run, timeout }
}

/// One run of a finder: what it may ask, and how it puts.
///
/// The run is dropped at its next await when the schedule's lease is lost, as
/// another process may be finding by then. So put first and mark the row
/// afterwards, or both in one transaction: a row that is marked and was not
/// put waits for [recovery](crate::recovery).
#[derive(Debug, Clone)]
pub struct Finding {
    mill: Mill,
    schedule: ScheduleName,
    queue: QueueName,
    instant: Timestamp,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    put: AtomicU64,
    duplicates: AtomicU64,
    full: AtomicBool,
}

impl Finding {
    pub(super) fn new(
        mill: Mill,
        schedule: ScheduleName,
        queue: QueueName,
        instant: Timestamp,
    ) -> Self {
        Finding { mill, schedule, queue, instant, seen: Arc::default() }
    }

    /// The mill the schedule belongs to.
    #[must_use]
    pub fn mill(&self) -> &Mill {
        &self.mill
    }

    /// The schedule that fired.
    #[must_use]
    pub fn schedule(&self) -> &ScheduleName {
        &self.schedule
    }

    /// The instant this fire is for.
    #[must_use]
    pub const fn instant(&self) -> Timestamp {
        self.instant
    }

    /// Whether the schedule's queue has room. Ask before each row (or each
    /// page of rows), and end the run when it has none: what was not put stays
    /// as it was and is found again at the next fire.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn can_accept(&self) -> Result<bool, Error> {
        let room = self.mill.can_accept(self.queue.as_str()).await?;
        if !room {
            self.seen.full.store(true, Ordering::Relaxed);
        }
        Ok(room)
    }

    /// Puts a task. A queue without room is an error ([`Error::is_full`]) with
    /// which the run may end: that is told as a full queue, not as a failure.
    ///
    /// # Errors
    /// When the task is refused or the store cannot answer.
    pub async fn put<T: TaskType>(&self, task: T) -> Result<Accepted, Error> {
        self.put_as(self.mill.put(task)).await
    }

    /// As [`Finding::put`], with more said about the task:
    /// `finding.put_as(finding.mill().put(task).priority(1))`.
    ///
    /// # Errors
    /// When the task is refused or the store cannot answer.
    pub async fn put_as(&self, put: Put) -> Result<Accepted, Error> {
        let put = put.await;
        self.refused(put.as_ref().err());
        let accepted = put?;
        let counter = match accepted {
            Accepted::Duplicate { .. } => &self.seen.duplicates,
            _ => &self.seen.put,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(accepted)
    }

    /// As [`Mill::put_in`]: puts inside your own transaction on the same SQLite
    /// file, so that a row is marked if and only if its task stands.
    ///
    /// # Errors
    /// As [`Mill::put_in`].
    pub fn put_in<T: TaskType>(
        &self,
        transaction: &Transaction<'_>,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<(PutReport, WakeGuard), Error> {
        let put = self.mill.put_in(transaction, tasks);
        self.refused(put.as_ref().err());
        let (report, guard) = put?;
        let duplicates = report.duplicates() as u64;
        self.seen.duplicates.fetch_add(duplicates, Ordering::Relaxed);
        self.seen.put.fetch_add(report.answers.len() as u64 - duplicates, Ordering::Relaxed);
        Ok((report, guard))
    }

    fn refused(&self, error: Option<&Error>) {
        match error {
            Some(error) if error.is_full() => self.seen.full.store(true, Ordering::Relaxed),
            Some(Error::Refused(why)) => {
                tracing::error!(schedule = %self.schedule, %why, "a found task was refused");
            }
            _ => {}
        }
    }

    /// Whether the queue had no room for what was found.
    pub(super) fn met_full_queue(&self) -> bool {
        self.seen.full.load(Ordering::Relaxed)
    }

    /// How many tasks this run put.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.seen.put.load(Ordering::Relaxed)
    }

    /// Says how the run went.
    pub(super) fn tell(&self) {
        let (put, duplicates) = (self.found(), self.seen.duplicates.load(Ordering::Relaxed));
        let (schedule, queue) = (&self.schedule, &self.queue);
        if self.met_full_queue() {
            tracing::warn!(
                %schedule, %queue, put,
                "the queue is full: what the finder did not put is found again"
            );
        } else {
            tracing::debug!(%schedule, %queue, put, duplicates, "a finder ended");
        }
    }
}
