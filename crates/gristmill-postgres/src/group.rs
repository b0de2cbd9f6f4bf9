//! Callers that put at the same time share a commit: while one statement is
//! under way, those who come meanwhile wait together and go as one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_core::{PutReport, PutRequest, QueueName, Result, StoreError};
use tokio::sync::oneshot;

use crate::store::Inner;

/// Statements of one queue that may be under way at once: with two, the next
/// group travels to the server while the one before is being committed.
const UNDER_WAY: usize = 2;

/// Who waits, by queue.
#[derive(Debug, Default)]
pub(crate) struct Group {
    lanes: Mutex<HashMap<QueueName, Lane>>,
}

#[derive(Debug, Default)]
struct Lane {
    under_way: usize,
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
        let start = lane.under_way < UNDER_WAY;
        lane.under_way += usize::from(start);
        start
    };
    if start {
        let inner = inner.clone();
        tokio::spawn(async move {
            let most = inner.limits.put_tasks;
            while let Some(asked) = inner.group.next(&queue, most) {
                travel(&inner, &queue, asked).await;
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
