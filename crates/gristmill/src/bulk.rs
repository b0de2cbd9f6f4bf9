//! Bulk puts: any number of tasks in constant memory, a flush at a time.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_core::Stream;
use gristmill_core::{NewTask, PutAnswer, PutRequest, QueueName, Refusal, StoreError};

use crate::{Error, Mill, RawTask, TaskType};

/// Tasks a flush holds unless set. Measured on the SQLite store: 100 reach
/// half of the rate of 1,000, and 10,000 nothing more.
const FLUSH: usize = 1_000;
/// Smaller flushes would spend their time waiting for commits.
const FLUSH_MIN: usize = 50;

/// What a bulk put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkReport {
    /// Tasks that are new.
    pub enqueued: u64,
    /// Tasks that stood already, in the store or earlier in the input.
    pub duplicates: u64,
    /// Tasks whose standing one took over their data.
    pub replaced: u64,
    /// Tasks that were not taken.
    pub refused: u64,
    /// Flushes that were acknowledged.
    pub flushes: u64,
}

impl BulkReport {
    /// Tasks that were answered for.
    #[must_use]
    pub const fn tasks(&self) -> u64 {
        self.enqueued + self.duplicates + self.replaced + self.refused
    }
}

/// How far a bulk put is: what was acknowledged so far.
pub type BulkProgress = BulkReport;

/// A bulk put that stopped midway.
#[derive(Debug, thiserror::Error)]
#[error(
    "the bulk put stopped after {} acknowledged flushes ({} tasks enqueued, {} duplicates); \
     the outcome of {unknown} more tasks is {}, and {ahead} after them were read and not put: \
     {cause}",
    acknowledged.flushes, acknowledged.enqueued, acknowledged.duplicates,
    if cause.wrote_nothing() { "known: they were not put" } else { "unknown" }
)]
pub struct BulkError {
    /// What is certain to stand.
    pub acknowledged: BulkReport,
    /// Tasks of the flush that failed. Ask `cause.wrote_nothing()` whether
    /// they may stand.
    pub unknown: usize,
    /// Tasks of the flush after it: they were read from the input while it was
    /// under way, and not put.
    pub ahead: usize,
    /// What went wrong: the store failed, or a task has no form.
    #[source]
    pub cause: Error,
}

/// A bulk put some of whose tasks were refused. All others were put.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} of {} tasks were refused, the first because {first}; {} were enqueued and {} stood already",
    report.refused, report.tasks(), report.enqueued, report.duplicates + report.replaced
)]
pub struct BulkRefused {
    /// What it did.
    pub report: BulkReport,
    /// Why the first one was not taken.
    pub first: Refusal,
}

/// A bulk put: say more, then [`Bulk::run`].
#[must_use = "a bulk put happens when it is run"]
pub struct Bulk<'a, I> {
    mill: &'a Mill,
    queue: &'static str,
    tasks: I,
    flush: usize,
    counts_refused: bool,
    progress: Option<Watch<'a>>,
}

/// Hears of each flush.
type Watch<'a> = Box<dyn FnMut(&BulkProgress) + Send + 'a>;

impl<I> std::fmt::Debug for Bulk<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bulk({}, flushes of {})", self.queue, self.flush)
    }
}

impl<'a, I> Bulk<'a, I> {
    pub(crate) fn new(mill: &'a Mill, queue: &'static str, tasks: I) -> Self {
        Bulk { mill, queue, tasks, flush: FLUSH, counts_refused: false, progress: None }
    }

    /// Tasks a flush, at least 50 and at most what the store takes.
    pub fn flush(mut self, tasks: usize) -> Self {
        self.flush = tasks.max(FLUSH_MIN);
        self
    }

    /// Only counts refused tasks, instead of ending in [`Error::BulkRefused`].
    pub fn count_refused(mut self) -> Self {
        self.counts_refused = true;
        self
    }

    /// Called after each flush with what was acknowledged so far.
    pub fn progress(mut self, watch: impl FnMut(&BulkProgress) + Send + 'a) -> Self {
        self.progress = Some(Box::new(watch));
        self
    }
}

impl<'a, T, I> Bulk<'a, I>
where
    T: TaskType,
    I: Iterator<Item = T>,
{
    /// Puts everything. A task that stands already is skipped and counted.
    ///
    /// # Errors
    /// When nobody declared the queue. When a task has no form or the store
    /// fails midway: [`Error::Bulk`] then says what stands for certain. And at
    /// the end when tasks were refused: [`Error::BulkRefused`] says how many.
    pub async fn run(self) -> Result<BulkReport, Error> {
        let Bulk { mill, queue, tasks, flush, counts_refused, progress } = self;
        let tasks = Iter(tasks);
        Bulk { mill, queue, tasks, flush, counts_refused, progress }.run_stream().await
    }
}

impl<'a, T, S> Bulk<'a, S>
where
    T: TaskType,
    S: Stream<Item = T> + Unpin,
{
    /// As [`Bulk::run`], for tasks that arrive over time.
    ///
    /// # Errors
    /// As [`Bulk::run`].
    pub async fn run_stream(mut self) -> Result<BulkReport, Error> {
        let queue = QueueName::new(self.queue)?;
        let store = self.mill.store();
        let size = self.flush.min(store.limits().put_tasks);
        let mut report = BulkReport::default();
        let mut first_refused = None;
        let mut gathered = gather(&mut self.tasks, size).await;
        loop {
            let tasks = match gathered {
                Ok(tasks) if tasks.is_empty() => break,
                Ok(tasks) => tasks,
                // What was put before it stands and is told of.
                Err(cause) => return Err(stopped(report, 0, 0, cause)),
            };
            let unknown = tasks.len();
            let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
            let mut putting = store.put(request);
            // The next flush is read and encoded while this one is under way,
            // and this one is told of as soon as it is acknowledged.
            // An input that has ended is not asked again.
            let more = if unknown < size { 0 } else { size };
            let mut gathering = pin!(gather(&mut self.tasks, more));
            let mut ahead = None;
            let flushed = loop {
                tokio::select! {
                    biased;
                    flushed = &mut putting => break flushed,
                    gathered = &mut gathering, if ahead.is_none() => ahead = Some(gathered),
                }
            };
            let answers = match flushed {
                Ok(flushed) => flushed.answers,
                Err(cause) => {
                    let ahead = ahead.and_then(Result::ok).map_or(0, |tasks| tasks.len());
                    return Err(stopped(report, unknown, ahead, cause.into()));
                }
            };
            for answer in answers {
                match answer {
                    PutAnswer::Enqueued { .. } => report.enqueued += 1,
                    PutAnswer::Duplicate { .. } => report.duplicates += 1,
                    PutAnswer::Replaced { .. } => report.replaced += 1,
                    PutAnswer::Refused(Refusal::UnknownQueue { name, suggestion }) => {
                        return Err(StoreError::UnknownQueue { name, suggestion }.into());
                    }
                    PutAnswer::Refused(why) => {
                        report.refused += 1;
                        first_refused.get_or_insert(why);
                    }
                }
            }
            report.flushes += 1;
            if let Some(watch) = &mut self.progress {
                watch(&report);
            }
            gathered = match ahead {
                Some(gathered) => gathered,
                None => gathering.await,
            };
        }
        tell_skipped(self.queue, report.duplicates, report.enqueued);
        match first_refused.filter(|_| !self.counts_refused) {
            Some(first) => Err(Box::new(BulkRefused { report, first }).into()),
            None => Ok(report),
        }
    }
}

/// The error of a bulk put that ends before its input does.
fn stopped(acknowledged: BulkReport, unknown: usize, ahead: usize, cause: Error) -> Error {
    Box::new(BulkError { acknowledged, unknown, ahead, cause }).into()
}

/// The next tasks of the input, as many as a flush holds.
async fn gather<T: TaskType, S: Stream<Item = T> + Unpin>(
    input: &mut S,
    size: usize,
) -> Result<Vec<NewTask>, Error> {
    let mut tasks = Vec::with_capacity(size);
    while tasks.len() < size
        && let Some(task) = next(input).await
    {
        tasks.push(RawTask::typed(&task)?.into_new_task()?);
    }
    Ok(tasks)
}

/// One debug line with both counts, when anything was skipped.
pub(crate) fn tell_skipped(queue: &str, skipped: u64, enqueued: u64) {
    if skipped > 0 {
        tracing::debug!(
            target: "gristmill::bulk",
            queue,
            skipped,
            enqueued,
            "skipped duplicate tasks"
        );
    }
}

impl Mill {
    /// Puts tasks that arrive over time, in constant memory, a flush at a
    /// time: run it with [`Bulk::run_stream`].
    pub fn put_stream<T, S>(&self, tasks: S) -> Bulk<'_, S>
    where
        T: TaskType,
        S: Stream<Item = T> + Unpin,
    {
        Bulk::new(self, T::QUEUE, tasks)
    }
}

/// An iterator as a stream that is always ready.
struct Iter<I>(I);

impl<I> Unpin for Iter<I> {}

impl<I: Iterator> Stream for Iter<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
