//! Bulk puts: any number of tasks in constant memory, a flush at a time.

use std::pin::Pin;
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
    /// Tasks a flush, if somebody said so.
    flush: Option<usize>,
    counts_refused: bool,
    progress: Option<Watch<'a>>,
}

/// Hears of each flush.
type Watch<'a> = Box<dyn FnMut(&BulkProgress) + Send + 'a>;

impl<I> std::fmt::Debug for Bulk<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bulk({}, flushes of {})", self.queue, self.flush.unwrap_or(FLUSH))
    }
}

impl<'a, I> Bulk<'a, I> {
    pub(crate) fn new(mill: &'a Mill, queue: &'static str, tasks: I) -> Self {
        Bulk { mill, queue, tasks, flush: None, counts_refused: false, progress: None }
    }

    /// Tasks a flush, at least 50 and at most what the store takes. Unless
    /// this is said they are 1,000, and fewer while others wait for the store:
    /// on SQLite and in a file spool they wait for a flush.
    pub fn flush(mut self, tasks: usize) -> Self {
        self.flush = Some(tasks.max(FLUSH_MIN));
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
        let size = self.flush.unwrap_or(FLUSH).min(store.limits().put_tasks);
        let mut report = BulkReport::default();
        let mut first_refused = None;
        let mut input = Input { tasks: &mut self.tasks, size, ahead: Vec::new(), end: None };
        let mut ready = Vec::new();
        loop {
            if ready.is_empty() {
                ready = match input.take().await {
                    Ok(tasks) if tasks.is_empty() => break,
                    Ok(tasks) => tasks,
                    // What was put before it stands and is told of.
                    Err(cause) => return Err(stopped(report, 0, 0, cause)),
                };
            }
            // Who said how large a flush is gets it.
            let limit = self.flush.is_none().then(|| store.flush_limit()).flatten();
            let rest = ready.split_off(limit.unwrap_or(size).clamp(1, ready.len()));
            let tasks = std::mem::replace(&mut ready, rest);
            let unknown = tasks.len();
            let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
            let mut putting = store.put(request);
            // The next flush is read and encoded while this one is under way,
            // and this one is told of as soon as it is acknowledged.
            let flushed = loop {
                tokio::select! {
                    biased;
                    flushed = &mut putting => break flushed,
                    () = input.read(), if !input.is_read() => {}
                }
            };
            let answers = match flushed {
                Ok(flushed) => flushed.answers,
                Err(cause) => {
                    let ahead = ready.len() + input.ahead.len();
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

/// Where tasks come from, and those that were read ahead.
struct Input<'s, S> {
    tasks: &'s mut S,
    /// Tasks a flush holds at most.
    size: usize,
    ahead: Vec<NewTask>,
    /// It is not asked again: it has ended, or has a task without a form.
    end: Option<Result<(), Error>>,
}

impl<T: TaskType, S: Stream<Item = T> + Unpin> Input<'_, S> {
    /// Whether the next flush is read, as far as there is one.
    fn is_read(&self) -> bool {
        self.end.is_some() || self.ahead.len() >= self.size
    }

    /// Reads the next flush. What was read is kept when this is dropped.
    async fn read(&mut self) {
        while !self.is_read() {
            match next(self.tasks).await.map(|task| RawTask::typed(&task)?.into_new_task()) {
                Some(Ok(task)) => self.ahead.push(task),
                Some(Err(cause)) => self.end = Some(Err(cause)),
                None => self.end = Some(Ok(())),
            }
        }
    }

    /// The next flush; nothing at the end.
    async fn take(&mut self) -> Result<Vec<NewTask>, Error> {
        self.read().await;
        if let Some(Err(_)) = &self.end
            && let Some(Err(cause)) = self.end.replace(Ok(()))
        {
            self.ahead.clear();
            return Err(cause);
        }
        Ok(std::mem::replace(&mut self.ahead, Vec::with_capacity(self.size)))
    }
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
