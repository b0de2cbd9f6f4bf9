//! Callers that put at the same time share a commit: while one statement is
//! under way, those who come meanwhile wait together and go as one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{PutReport, PutRequest, QueueName, Result, StoreError};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::held::{self, Patience};
use crate::deadline::{Class, Deadline};
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
/// How often is looked at who waits.
const LOOK: Duration = Duration::from_millis(5);
/// How long after a commit the callers it answered are waited for.
const COMPANY: Duration = Duration::from_micros(200);

/// Who waits, by queue.
#[derive(Debug, Default)]
pub(crate) struct Group(Mutex<Lanes>);

#[derive(Debug, Default)]
struct Lanes {
    lanes: HashMap<QueueName, Lane>,
    /// Somebody looks after those who wait.
    are_watched: bool,
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
    since: Instant,
    deadline: Deadline,
    request: PutRequest,
    answer: oneshot::Sender<Result<PutReport>>,
}

impl Lane {
    /// Whether another traveller is to set out for those who wait. `long`: one of them
    /// waited longer than a statement takes. It is counted as under way.
    fn needs_another(&mut self, long: bool) -> bool {
        let tasks = || self.waiting.iter().map(|asked| asked.request.tasks.len()).sum::<usize>();
        let needed = match self.under_way {
            _ if self.waiting.is_empty() || self.gathers => false,
            0 => true,
            UNDER_WAY.. => false,
            1 => long || tasks() >= WORTH,
            _ => long,
        };
        self.under_way += usize::from(needed);
        needed
    }
}

impl Group {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        // Lists of requests are valid whatever a panicking holder did.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a moment for callers that were just answered and are about to ask
    /// again: without it the first of them would get a commit of its own, and
    /// the others another one. Nobody waits who was alone before.
    async fn company(&self, queue: &QueueName, expected: usize) {
        let since = Instant::now();
        let gathers = |gathers: bool| {
            let mut lanes = self.lanes();
            let Some(lane) = lanes.lanes.get_mut(queue) else { return true };
            lane.gathers = gathers;
            lane.waiting.len() >= expected
        };
        while !gathers(true) && since.elapsed() < COMPANY {
            tokio::task::yield_now().await;
        }
        gathers(false);
    }

    /// The queues whose callers waited too long for the traveller before them, and those
    /// callers that nobody took along until their deadline. Nothing when nobody waits and
    /// nothing is under way: then nobody looks any more.
    fn look(&self) -> Option<(Vec<QueueName>, Vec<Asked>)> {
        let mut lanes = self.lanes();
        if lanes.lanes.is_empty() {
            lanes.are_watched = false;
            return None;
        }
        let (mut long, mut late) = (Vec::new(), Vec::new());
        for (queue, lane) in &mut lanes.lanes {
            // One that was sent has a deadline of its own.
            late.extend(lane.waiting.extract_if(.., |asked| asked.deadline.has_passed()));
            let oldest = lane.waiting.first().map(|asked| asked.since.elapsed());
            if oldest.is_some_and(|waited| waited >= PATIENCE) && lane.needs_another(true) {
                long.push(queue.clone());
            }
        }
        Some((long, late))
    }

    /// The requests that go together next, or an end of this traveller.
    fn next(&self, queue: &QueueName, most: usize) -> Option<Vec<Asked>> {
        let mut lanes = self.lanes();
        let lane = lanes.lanes.get_mut(queue)?;
        if lane.waiting.is_empty() {
            lane.under_way -= 1;
            if lane.under_way == 0 {
                lanes.lanes.remove(queue);
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
///
/// The caller sets no timer: each would wake its runtime's thread once more, beside the
/// answer. One of the driver's is enough for all who wait.
pub(crate) async fn put(inner: &Arc<Inner>, request: PutRequest) -> Result<PutReport> {
    let (answer, answered) = oneshot::channel();
    let queue = request.queue.clone();
    let deadline = inner.pool.deadline(Class::Flow);
    let asked = Asked { since: Instant::now(), deadline, request, answer };
    let (is_needed, are_watched) = {
        let mut lanes = inner.group.lanes();
        let are_watched = std::mem::replace(&mut lanes.are_watched, true);
        let lane = lanes.lanes.entry(queue.clone()).or_default();
        lane.waiting.push(asked);
        (lane.needs_another(false), are_watched)
    };
    if is_needed {
        set_out(inner, queue);
    }
    if !are_watched {
        watch(inner);
    }
    answered.await.map_err(|_| StoreError::unknown("the program is ending".to_owned()))?
}

/// Looks after those who wait, as long as there are any.
fn watch(inner: &Arc<Inner>) {
    let shared = inner.clone();
    inner.pool.driver.spawn(async move {
        let inner = shared;
        loop {
            sleep(LOOK).await;
            let Some((long, late)) = inner.group.look() else { return };
            for queue in long {
                set_out(&inner, queue);
            }
            for Asked { deadline, answer, .. } in late {
                let why = format!("others were waited for longer than {:?}", deadline.limit);
                // Whoever does not wait any more needs no answer.
                let _ = answer.send(Err(StoreError::unavailable(why)));
            }
        }
    });
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
        asked.into_iter().map(|a| (a.request, (a.since, a.deadline, a.answer))).unzip();
    let sizes: Vec<usize> = requests.iter().map(|request| request.tasks.len()).collect();
    let tasks = requests.into_iter().flat_map(|request| request.tasks).collect();
    let whole = PutRequest { queue: queue.clone(), tasks, atomic: false };
    let put = inner.put_now(&whole, Patience::Short).await;
    // Counted before the answers: who is answered may ask again at once.
    let others = inner.group.lanes().lanes.get(queue).map_or(0, |lane| lane.waiting.len());
    match put {
        Err(StoreError::Held(_)) => {
            let mut tasks = whole.tasks.into_iter();
            let again = sizes.into_iter().zip(answers).map(|(size, (since, deadline, answer))| {
                let tasks = tasks.by_ref().take(size).collect();
                let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
                Asked { since, deadline, request, answer }
            });
            return (Some(again.collect()), others);
        }
        Ok(report) => {
            let mut all = report.answers.into_iter();
            for (size, (_, _, answer)) in sizes.into_iter().zip(answers) {
                let report = PutReport { answers: all.by_ref().take(size).collect() };
                // Whoever does not wait any more needs no answer.
                let _ = answer.send(Ok(report));
            }
        }
        Err(error) => {
            for (_, _, answer) in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
    (None, others)
}
