//! Finders: what they are given, and the numbers kept of a run.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gristmill_core::{PutAnswer, QueueName, Refusal, ScheduleName, Timestamp};

use crate::put::Destination;
use crate::{Bulk, BulkReport, Error, IntoPut, Mill, Put};

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

    /// Puts a task: await it as it is, or say more first, as on [`Mill::put`];
    /// with [`Put::within`] a row of yours is marked if and only if its task
    /// stands. A queue without room is an error ([`Error::is_full`]) with which
    /// the run may end: that is told as a full queue, not as a failure.
    pub fn put(&self, task: impl IntoPut) -> Put<Finding> {
        task.into_put().goes_to(self.clone())
    }

    /// Puts any number of tasks, as [`Mill::put_all`].
    pub fn put_all<I>(&self, tasks: I) -> Bulk<'_, I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoPut,
    {
        self.mill.put_all(tasks).found_by(self)
    }

    /// What became of several.
    pub(crate) fn hear_all(&self, put: Result<&BulkReport, &Error>) {
        let report = match put {
            Ok(report) => report,
            Err(Error::Bulk(stopped)) => &stopped.acknowledged,
            Err(Error::BulkRefused(refused)) => {
                self.is_refused(&refused.first);
                &refused.report
            }
            Err(error) => return self.refused(error),
        };
        self.seen.duplicates.fetch_add(report.duplicates, Ordering::Relaxed);
        self.seen.put.fetch_add(report.enqueued + report.replaced, Ordering::Relaxed);
    }

    fn refused(&self, error: &Error) {
        if let Error::Refused(why) = error {
            self.is_refused(why);
        }
    }

    fn is_refused(&self, why: &Refusal) {
        if matches!(why, Refusal::QueueFull { .. } | Refusal::StoreFull { .. }) {
            self.seen.full.store(true, Ordering::Relaxed);
        } else {
            tracing::error!(schedule = %self.schedule, %why, "a found task was refused");
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

impl Destination for Finding {
    fn mill(&self) -> &Mill {
        &self.mill
    }

    fn hear(&self, answer: &Result<PutAnswer, Error>) {
        let counter = match answer {
            Ok(PutAnswer::Refused(why)) => return self.is_refused(why),
            Ok(PutAnswer::Duplicate { .. }) => &self.seen.duplicates,
            Ok(_) => &self.seen.put,
            Err(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
