//! Callers that put at the same time share a commit: while one statement is
//! under way, those who come meanwhile wait together and go as one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{PutReport, PutRequest, QueueName, Result, StoreError};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::held::{self, Patience};
use crate::deadline::Class;
use crate::store::Inner;

/// So many tasks are worth a statement of their own while another one is under
/// way; fewer wait for it and go together.
const WORTH: usize = 250;
/// A statement that is under way for so long may wait for somebody's open
/// transaction: the others do not wait behind it.
const PATIENCE: Duration = Duration::from_millis(10);
/// Most statements of one queue that are under way at once. Claims and
/// settlements need connections too.
const UNDER_WAY: usize = 4;
/// How long after a commit the callers it answered are waited for.
const COMPANY: Duration = Duration::from_micros(200);

/// Who waits, by queue.
#[derive(Debug, Default)]
pub(crate) struct Group {
    lanes: Mutex<HashMap<QueueName, Lane>>,
    /// How many came.
    asked: AtomicU64,
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
    /// Its own.
    number: u64,
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

    /// Whether another traveller is to set out for those who wait. `long`: they
    /// waited longer than a statement takes.
    fn is_another_needed(&self, queue: &QueueName, long: bool) -> bool {
        let mut lanes = self.lanes();
        let Some(lane) = lanes.get_mut(queue) else { return false };
        let tasks = || lane.waiting.iter().map(|asked| asked.request.tasks.len()).sum::<usize>();
        let needed = match lane.under_way {
            _ if lane.waiting.is_empty() || lane.gathers => false,
            0 => true,
            UNDER_WAY.. => false,
            1 => long || tasks() >= WORTH,
            _ => long,
        };
        lane.under_way += usize::from(needed);
        needed
    }

    /// Whether this one was waiting still, and does so no more.
    fn give_up(&self, queue: &QueueName, number: u64) -> bool {
        let mut lanes = self.lanes();
        let Some(lane) = lanes.get_mut(queue) else { return false };
        let before = lane.waiting.len();
        lane.waiting.retain(|asked| asked.number != number);
        lane.waiting.len() < before
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
    let (answer, mut answered) = oneshot::channel();
    let queue = request.queue.clone();
    let deadline = inner.pool.deadline(Class::Flow);
    let number = inner.group.asked.fetch_add(1, Ordering::Relaxed);
    {
        let mut lanes = inner.group.lanes();
        lanes.entry(queue.clone()).or_default().waiting.push(Asked { number, request, answer });
    }
    if inner.group.is_another_needed(&queue, false) {
        set_out(inner, queue.clone());
    }
    let ended = || StoreError::unknown("the program is ending".to_owned());
    loop {
        match timeout(PATIENCE, &mut answered).await {
            Ok(answer) => return answer.map_err(|_| ended())?,
            // One that was sent has a deadline of its own.
            Err(_) if deadline.has_passed() && inner.group.give_up(&queue, number) => {
                let why = format!("others were waited for longer than {:?}", deadline.limit);
                return Err(StoreError::unavailable(why));
            }
            Err(_) if inner.group.is_another_needed(&queue, true) => set_out(inner, queue.clone()),
            Err(_) => {}
        }
    }
}

/// Starts a traveller, who puts for those who wait until nobody does.
fn set_out(inner: &Arc<Inner>, queue: QueueName) {
    let shared = inner.clone();
    // Beside the connections: what comes back is then in nobody's way, and no
    // thread has to wake another one between the two.
    inner.pool.driver.spawn(async move {
        let inner = shared;
        let most = inner.limits.put_tasks;
        while let Some(asked) = inner.group.next(&queue, most) {
            let callers = asked.len();
            let others = travel(&inner, &queue, asked).await;
            if callers > 1 {
                inner.group.company(&queue, callers + others).await;
            }
        }
    });
}

/// One statement for all of them. When one has to wait for somebody else's open
/// transaction, the others do not: they go in halves, and the one aside. Returns
/// how many others came meanwhile.
async fn travel(inner: &Arc<Inner>, queue: &QueueName, asked: Vec<Asked>) -> usize {
    let mut parts = vec![asked];
    let mut others = 0;
    while let Some(part) = parts.pop() {
        let (held, came) = try_all(inner, queue, part).await;
        others = came;
        match held {
            None => {}
            Some(mut held) if held.len() > 1 => {
                let second = held.split_off(held.len() / 2);
                parts.extend([second, held]);
            }
            Some(alone) => alone.into_iter().for_each(|asked| wait_aside(inner, asked)),
        }
    }
    others
}

/// Puts when somebody else's open transaction is over. Nobody waits for it but
/// its caller.
fn wait_aside(inner: &Arc<Inner>, asked: Asked) {
    let shared = inner.clone();
    inner.pool.driver.spawn(async move {
        let Asked { request, mut answer, .. } = asked;
        tokio::select! {
            put = held::wait(&shared, &request) => {
                // Whoever does not wait any more needs no answer.
                let _ = answer.send(put);
            }
            // It may never end, and nobody is there to hear.
            () = answer.closed() => {}
        }
    });
}

/// One statement for all of them, who come back when it would wait. With it
/// how many others came meanwhile.
async fn try_all(
    inner: &Arc<Inner>,
    queue: &QueueName,
    asked: Vec<Asked>,
) -> (Option<Vec<Asked>>, usize) {
    let (requests, answers): (Vec<PutRequest>, Vec<_>) =
        asked.into_iter().map(|asked| (asked.request, (asked.number, asked.answer))).unzip();
    let sizes: Vec<usize> = requests.iter().map(|request| request.tasks.len()).collect();
    let tasks = requests.into_iter().flat_map(|request| request.tasks).collect();
    let whole = PutRequest { queue: queue.clone(), tasks, atomic: false };
    let put = inner.put_now(&whole, Patience::Short).await;
    // Counted before the answers: who is answered may ask again at once.
    let others = inner.group.lanes().get(queue).map_or(0, |lane| lane.waiting.len());
    match put {
        Err(StoreError::Held(_)) => {
            let mut tasks = whole.tasks.into_iter();
            let again = sizes.into_iter().zip(answers).map(|(size, (number, answer))| {
                let tasks = tasks.by_ref().take(size).collect();
                let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
                Asked { number, request, answer }
            });
            return (Some(again.collect()), others);
        }
        Ok(report) => {
            let mut all = report.answers.into_iter();
            for (size, (_, answer)) in sizes.into_iter().zip(answers) {
                let report = PutReport { answers: all.by_ref().take(size).collect() };
                // Whoever does not wait any more needs no answer.
                let _ = answer.send(Ok(report));
            }
        }
        Err(error) => {
            for (_, answer) in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
    (None, others)
}
