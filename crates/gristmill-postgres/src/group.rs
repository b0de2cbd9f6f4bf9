//! Callers that put at the same time share a commit: while one statement is
//! under way, those who come meanwhile wait together and go as one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{PutReport, PutRequest, QueueName, Result, StoreError};
use tokio::sync::oneshot;

use crate::store::Inner;

/// Statements of one queue that may be under way at once: with two, the next
/// group travels to the server while the one before is being committed.
const UNDER_WAY: usize = 2;
/// How long after a commit the callers it answered are waited for.
const COMPANY: Duration = Duration::from_micros(150);

/// Who waits, by queue.
#[derive(Debug, Default)]
pub(crate) struct Group {
    lanes: Mutex<HashMap<QueueName, Lane>>,
}

#[derive(Debug, Default)]
struct Lane {
    under_way: usize,
    /// A traveller waits for company: whoever comes now goes with it.
    gathers: bool,
    waiting: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    request: PutRequest,
    answer: oneshot::Sender<Result<PutReport>>,
}

impl Group {
    fn lanes(&self) -> MutexGuard<'_, HashMap<QueueName, Lane>> {
        // Lists of requests are valid whatever a panicking holder did.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a moment for callers that were just answered and are about to ask
    /// again: without it the first of them would get a commit of its own, and
    /// the others another one. Nobody waits who was alone before.
    async fn company(&self, queue: &QueueName, expected: usize) {
        let since = Instant::now();
        let gathers = |gathers: bool| {
            let mut lanes = self.lanes();
            let Some(lane) = lanes.get_mut(queue) else { return true };
            lane.gathers = gathers;
            lane.waiting.len() >= expected
        };
        while !gathers(true) && since.elapsed() < COMPANY {
            tokio::task::yield_now().await;
        }
        gathers(false);
    }

    /// The requests that go together next, or an end of this traveller.
    fn next(&self, queue: &QueueName, most: usize) -> Option<Vec<Asked>> {
        let mut lanes = self.lanes();
        let lane = lanes.get_mut(queue)?;
        if lane.waiting.is_empty() {
            lane.under_way -= 1;
            if lane.under_way == 0 {
                lanes.remove(queue);
            }
            return None;
        }
        let mut tasks = 0;
        let fits = lane.waiting.iter().take_while(|asked| {
            tasks += asked.request.tasks.len();
            tasks <= most
        });
        let count = fits.count().max(1);
        Some(lane.waiting.drain(..count).collect())
    }
}

/// Puts in a shared commit. The work goes on when the caller is dropped: the
/// others of its group still wait for it.
pub(crate) async fn put(inner: &Arc<Inner>, request: PutRequest) -> Result<PutReport> {
    let (answer, answered) = oneshot::channel();
    let queue = request.queue.clone();
    let start = {
        let mut lanes = inner.group.lanes();
        let lane = lanes.entry(queue.clone()).or_default();
        lane.waiting.push(Asked { request, answer });
        let start = lane.under_way < UNDER_WAY && !lane.gathers;
        lane.under_way += usize::from(start);
        start
    };
    if start {
        let inner = inner.clone();
        tokio::spawn(async move {
            let most = inner.limits.put_tasks;
            while let Some(asked) = inner.group.next(&queue, most) {
                let callers = asked.len();
                travel(&inner, &queue, asked).await;
                if callers > 1 {
                    inner.group.company(&queue, callers).await;
                }
            }
        });
    }
    let ended = || StoreError::Unknown("the program is ending".to_owned());
    answered.await.map_err(|_| ended())?
}

/// One statement for all of them.
async fn travel(inner: &Arc<Inner>, queue: &QueueName, asked: Vec<Asked>) {
    let (requests, answers): (Vec<PutRequest>, Vec<_>) =
        asked.into_iter().map(|asked| (asked.request, asked.answer)).unzip();
    let sizes: Vec<usize> = requests.iter().map(|request| request.tasks.len()).collect();
    let tasks = requests.into_iter().flat_map(|request| request.tasks).collect();
    let whole = PutRequest { queue: queue.clone(), tasks, atomic: false };
    match inner.put_now(&whole).await {
        Ok(report) => {
            let mut all = report.answers.into_iter();
            for (size, answer) in sizes.into_iter().zip(answers) {
                let report = PutReport { answers: all.by_ref().take(size).collect() };
                // Whoever does not wait any more needs no answer.
                let _ = answer.send(Ok(report));
            }
        }
        Err(error) => {
            for answer in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}
