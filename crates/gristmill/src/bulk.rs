//! Bulk puts: any number of tasks in constant memory, a flush at a time.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use gristmill_core::{PutAnswer, PutReport, PutRequest, QueueName, Refusal, StoreError};

use crate::bulk_input::Input;
use crate::inside::{Transaction, Within};
use crate::schedule::Finding;
use crate::{Error, IntoPut, Mill};

/// Tasks a flush holds unless set. Measured on the SQLite store: 100 reach
/// half of the rate of 1,000, and 10,000 nothing more.
const FLUSH: usize = 1_000;
/// Smaller flushes would spend their time waiting for commits.
const FLUSH_MIN: usize = 50;

/// What a bulk put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
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
    /// Counts one more flush.
    const fn add(&mut self, flush: &BulkReport) {
        self.enqueued += flush.enqueued;
        self.duplicates += flush.duplicates;
        self.replaced += flush.replaced;
        self.refused += flush.refused;
        self.flushes += 1;
    }

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
#[non_exhaustive]
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

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BulkError { acknowledged, unknown, ahead, cause } = self;
        let BulkReport { flushes, enqueued, duplicates, .. } = acknowledged;
        let known = if cause.wrote_nothing() { "known: they were not put" } else { "unknown" };
        write!(
            f,
            "the bulk put stopped after {flushes} acknowledged flushes ({enqueued} tasks enqueued, \
             {duplicates} duplicates); the outcome of {unknown} more tasks is {known}, and {ahead} \
             after them were read and not put"
        )?;
        if f.alternate() { write!(f, ": {cause:#}") } else { Ok(()) }
    }
}

/// A bulk put some of whose tasks were refused. All others were put.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} of {} tasks were refused, the first because {first}; {} were enqueued and {} stood already",
    report.refused, report.tasks(), report.enqueued, report.duplicates + report.replaced
)]
#[non_exhaustive]
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
    tasks: I,
    /// The finder's run that counts it.
    finding: Option<&'a Finding>,
    /// Tasks a flush, if somebody said so.
    flush: Option<usize>,
    counts_refused: bool,
    progress: Option<Watch<'a>>,
}

/// Hears of each flush.
type Watch<'a> = Box<dyn FnMut(&BulkProgress) + Send + 'a>;

impl<I> std::fmt::Debug for Bulk<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bulk(flushes of {})", self.flush.unwrap_or(FLUSH))
    }
}

impl<'a, I> Bulk<'a, I> {
    pub(crate) fn new(mill: &'a Mill, tasks: I) -> Self {
        let (flush, counts_refused, progress) = (None, false, None);
        Bulk { mill, tasks, finding: None, flush, counts_refused, progress }
    }

    pub(crate) fn found_by(mut self, finding: &'a Finding) -> Self {
        self.finding = Some(finding);
        self
    }

    /// Tasks a flush, at least 50 and at most what the store takes. Unless
    /// this is said they are 1,000, and fewer while others wait for the store:
    /// on SQLite and in a file spool they wait for a flush. In a spool, where a task
    /// takes longer, they are as many as take 5 ms, or ten syncs of the disk.
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

impl<'a, I> Bulk<'a, I>
where
    I: Iterator,
    I::Item: IntoPut,
{
    /// Puts everything. A task that stands already is skipped and counted.
    ///
    /// # Errors
    /// When nobody declared the queue. When a task has no form or the store
    /// fails midway: [`Error::Bulk`] then says what stands for certain. And at
    /// the end when tasks were refused: [`Error::BulkRefused`] says how many.
    pub async fn run(self) -> Result<BulkReport, Error> {
        let Bulk { mill, tasks, finding, flush, counts_refused, progress } = self;
        let tasks = Iter(tasks);
        Bulk { mill, tasks, finding, flush, counts_refused, progress }.run_stream().await
    }

    /// Puts everything inside your own transaction, in one step and one round
    /// trip a queue: the tasks stand if and only if it commits. The answers come
    /// in the order of the tasks.
    ///
    /// A task that is refused is an error (unless [`Bulk::count_refused`] was
    /// said): roll the transaction back then, for the others are in it.
    ///
    /// What fits: see [`Transaction`].
    pub fn within<Tx: Transaction>(self, transaction: Tx) -> Within<Tx, PutReport> {
        let (mut places, mut requests) = (Vec::new(), Vec::<PutRequest>::new());
        let mut failed = None;
        for task in self.tasks {
            let put = task.into_put().into_draft().and_then(|draft| draft.finish_for(self.mill));
            let (queue, task) = match put {
                Ok(put) => put,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            let at = requests.iter().position(|request| request.queue == queue);
            let at = at.unwrap_or(requests.len());
            if at == requests.len() {
                requests.push(PutRequest { queue, tasks: Vec::new(), atomic: false });
            }
            if let Some(request) = requests.get_mut(at) {
                request.tasks.push(task);
            }
            places.push(at);
        }
        let queues: Vec<QueueName> = requests.iter().map(|to| to.queue.clone()).collect();
        let requests = failed.map_or(Ok(requests), Err);
        let (finding, counts_refused) = (self.finding.cloned(), self.counts_refused);
        Within::put(self.mill.clone(), transaction, requests, move |reports| {
            for (queue, report) in queues.iter().zip(&reports) {
                let (skipped, enqueued) = (report.duplicates() as u64, report.enqueued() as u64);
                tell_skipped(queue.as_str(), skipped, enqueued);
            }
            let mut answers: Vec<_> =
                reports.into_iter().map(|report| report.answers.into_iter()).collect();
            let in_order = places.iter().filter_map(|at| answers.get_mut(*at)?.next());
            let report = PutReport { answers: in_order.collect() };
            let counted = counted(&report.answers, BulkReport::default(), &mut None);
            let taken = match (counted, report.first_refusal()) {
                (Err(unknown), _) => Err(unknown),
                (Ok(_), Some(why)) if !counts_refused => Err(why.clone().into()),
                (Ok(counted), _) => Ok(counted),
            };
            if let Some(finding) = finding {
                finding.hear_all(taken.as_ref());
            }
            taken.map(|_| report)
        })
    }
}

impl<'a, S> Bulk<'a, S>
where
    S: Stream + Unpin,
    S::Item: IntoPut,
{
    /// As [`Bulk::run`], for tasks that arrive over time.
    ///
    /// # Errors
    /// As [`Bulk::run`].
    pub async fn run_stream(self) -> Result<BulkReport, Error> {
        let finding = self.finding;
        let ran = self.flush_all().await;
        if let Some(finding) = finding {
            finding.hear_all(ran.as_ref());
        }
        ran
    }

    async fn flush_all(mut self) -> Result<BulkReport, Error> {
        let store = self.mill.store();
        let size = self.flush.unwrap_or(FLUSH).min(store.limits().put_tasks);
        let mut report = BulkReport::default();
        let mut first_refused = None;
        let mut input = Input::new(self.mill, &mut self.tasks, size);
        let (mut queue, mut ready) = (None, Vec::new());
        let mut by_queue: Vec<(QueueName, BulkReport)> = Vec::new();
        loop {
            if ready.is_empty() {
                (queue, ready) = match input.take().await {
                    Ok(taken) => taken,
                    // What was put before it stands and is told of.
                    Err(cause) => return Err(stopped(report, 0, 0, cause)),
                };
            }
            let Some(queue) = &queue else { break };
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
                    let ahead = ready.len() + input.read_ahead();
                    return Err(stopped(report, unknown, ahead, cause.into()));
                }
            };
            let flush = counted(&answers, BulkReport::default(), &mut first_refused)?;
            report.add(&flush);
            match by_queue.iter_mut().find(|(known, _)| known == queue) {
                Some((_, flushes)) => flushes.add(&flush),
                None => by_queue.push((queue.clone(), flush)),
            }
            if let Some(watch) = &mut self.progress {
                watch(&report);
            }
        }
        for (queue, put) in &by_queue {
            tell_skipped(queue.as_str(), put.duplicates, put.enqueued);
        }
        match first_refused.filter(|_| !self.counts_refused) {
            Some(first) => Err(Box::new(BulkRefused { report, first }).into()),
            None => Ok(report),
        }
    }
}

/// The report with these answers counted.
fn counted(
    answers: &[PutAnswer],
    mut report: BulkReport,
    first_refused: &mut Option<Refusal>,
) -> Result<BulkReport, Error> {
    for answer in answers {
        match answer {
            PutAnswer::Enqueued { .. } => report.enqueued += 1,
            PutAnswer::Duplicate { .. } => report.duplicates += 1,
            PutAnswer::Replaced { .. } => report.replaced += 1,
            PutAnswer::Refused(Refusal::UnknownQueue { name, suggestion }) => {
                let (name, suggestion) = (name.clone(), suggestion.clone());
                return Err(StoreError::UnknownQueue { name, suggestion }.into());
            }
            PutAnswer::Refused(why) => {
                report.refused += 1;
                first_refused.get_or_insert_with(|| why.clone());
            }
        }
    }
    Ok(report)
}

/// The error of a bulk put that ends before its input does.
fn stopped(acknowledged: BulkReport, unknown: usize, ahead: usize, cause: Error) -> Error {
    Box::new(BulkError { acknowledged, unknown, ahead, cause }).into()
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
    pub fn put_stream<S>(&self, tasks: S) -> Bulk<'_, S>
    where
        S: Stream + Unpin,
        S::Item: IntoPut,
    {
        Bulk::new(self, tasks)
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
