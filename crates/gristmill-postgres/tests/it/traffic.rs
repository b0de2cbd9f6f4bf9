//! Puts, claims and settlements that go on while something is done to the
//! server, and what must be true of them afterwards: what was acknowledged was
//! done, once, or again only when a lease had run out.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, Claims, NewTask, Outcome, SettingsPatch, SettleAnswer, Store, StoreError, TaskId,
};
use gristmill_postgres::{Options, PostgresStore};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::support::{asking, declare, request, settlements, task};

/// Short limits, so that a test need not wait for the real ones.
pub(crate) const WORDS: &str =
    "timeout=2s&heartbeat_timeout=1s&operator_timeout=3s&connect_timeout=2";

/// What everything must go on within, once it can.
pub(crate) const SOON: Duration = Duration::from_secs(10);

const LEASE: Duration = Duration::from_secs(3);
const QUEUE: &str = "q";

/// Opens a store with short limits.
pub(crate) async fn open(url: &str) -> Arc<PostgresStore> {
    let url = format!("{url}?{WORDS}");
    Arc::new(PostgresStore::open(&url, Options::default()).await.expect("a store"))
}

/// Waits for what cannot be heard, only looked at.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < SOON, "{what}: not within {SOON:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[derive(Default)]
struct Seen {
    put: AtomicU64,
    done: AtomicU64,
    /// What did not go well.
    put_in_vain: AtomicU64,
    worked_in_vain: AtomicU64,
    ending: AtomicBool,
    ended: AtomicBool,
}

/// One who puts and one who works, each with a store of its own.
pub(crate) struct Traffic {
    seen: Arc<Seen>,
    worker_store: Arc<PostgresStore>,
    producer: JoinHandle<Vec<TaskId>>,
    worker: JoinHandle<HashMap<TaskId, Task>>,
}

#[derive(Default)]
struct Task {
    /// When each delivery was asked for, and when it came: its lease began in
    /// between.
    given: Vec<(Instant, Instant)>,
    recorded: usize,
    /// A settlement's answer was lost, so that a later one may say that it is
    /// gone.
    unknown: bool,
    gone: bool,
}

impl Traffic {
    pub(crate) async fn start(url: &str) -> Self {
        let (ours, theirs) = (open(url).await, open(url).await);
        // Otherwise the new primary may not have heard of the last claims, and gives
        // their tasks again at once: that is no second delivery to be judged.
        let settings = SettingsPatch {
            lease: Some(LEASE),
            claims: Some(Claims::Durable),
            ..SettingsPatch::default()
        };
        declare(&ours, QUEUE, settings).await;
        let seen = Arc::new(Seen::default());
        let producer = tokio::spawn(produce(ours, seen.clone()));
        let worker = tokio::spawn(work(theirs.clone(), seen.clone()));
        let traffic = Traffic { seen, worker_store: theirs, producer, worker };
        traffic.flows().await;
        traffic
    }

    /// Waits until all of it goes on: puts, claims with settlements, listening.
    pub(crate) async fn flows(&self) {
        let numbers = || {
            let Seen { put, done, .. } = &*self.seen;
            (put.load(Ordering::Relaxed), done.load(Ordering::Relaxed))
        };
        let (put, done) = numbers();
        until("puts", async || numbers().0 >= put + 5).await;
        until("claims and settlements", async || numbers().1 >= done + 5).await;
        until("listening", async || self.worker_store.hears_wake_ups()).await;
    }

    /// Waits until both were refused so often from now on.
    pub(crate) async fn is_refused(&self, times: u64) {
        for vain in [&self.seen.put_in_vain, &self.seen.worked_in_vain] {
            let so_far = vain.load(Ordering::Relaxed);
            until("trouble", async || vain.load(Ordering::Relaxed) >= so_far + times).await;
        }
    }

    /// Puts no more, lets the rest be done, and judges.
    pub(crate) async fn end(self) {
        self.seen.ending.store(true, Ordering::Relaxed);
        let acknowledged = self.producer.await.expect("it puts");
        self.seen.ended.store(true, Ordering::Relaxed);
        let tasks = self.worker.await.expect("it works");
        for id in &acknowledged {
            let task = tasks.get(id);
            assert!(
                task.is_some_and(|task| task.recorded + usize::from(task.gone) > 0),
                "{id} is lost"
            );
        }
        for (id, task) in &tasks {
            assert!(task.recorded <= 1, "{id} was done {} times", task.recorded);
            for pair in task.given.windows(2) {
                let longest = pair[1].1 - pair[0].0;
                assert!(longest >= LEASE, "{id} was given again after {longest:?}");
            }
        }
    }
}

/// Puts one task after the other, each by its own id until it is acknowledged.
async fn produce(store: Arc<PostgresStore>, seen: Arc<Seen>) -> Vec<TaskId> {
    let mut acknowledged = Vec::new();
    let mut pace = tokio::time::interval(Duration::from_millis(2));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0u64.. {
        if seen.ending.load(Ordering::Relaxed) {
            break;
        }
        let one = NewTask { id: Some(number.to_string()), ..task("x") };
        loop {
            match store.put(request(QUEUE, vec![one.clone()])).await {
                Ok(report) => {
                    acknowledged.push(report.answers[0].id().expect("it stands"));
                    seen.put.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                Err(error) => again(&error, &seen.put_in_vain).await,
            }
        }
        pace.tick().await;
    }
    acknowledged
}

async fn again(error: &StoreError, in_vain: &AtomicU64) {
    in_vain.fetch_add(1, Ordering::Relaxed);
    assert!(error.is_retryable() || !error.wrote_nothing(), "{error}");
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Claims and settles until nothing is left.
async fn work(store: Arc<PostgresStore>, seen: Arc<Seen>) -> HashMap<TaskId, Task> {
    let mut tasks: HashMap<TaskId, Task> = HashMap::new();
    loop {
        let mark = store.mark();
        let asked = Instant::now();
        let request = ClaimRequest { lease: Some(LEASE), ..asking(QUEUE, 20) };
        let claim = match store.claim(request).await {
            Ok(claim) => claim,
            Err(error) => {
                again(&error, &seen.worked_in_vain).await;
                continue;
            }
        };
        let came = Instant::now();
        for task in &claim.tasks {
            tasks.entry(task.id).or_default().given.push((asked, came));
        }
        if !claim.tasks.is_empty() {
            settle(&*store, &claim, &mut tasks, &seen).await;
            continue;
        }
        if seen.ended.load(Ordering::Relaxed) && is_empty(&*store).await {
            return tasks;
        }
        let queues = [claim.queue];
        let _ = store.wait(&queues, mark, Duration::from_millis(500)).await;
    }
}

async fn settle(
    store: &dyn Store,
    claim: &gristmill_core::Claim,
    tasks: &mut HashMap<TaskId, Task>,
    seen: &Seen,
) {
    loop {
        match store.settle(settlements(claim, &Outcome::Done)).await {
            Ok(answers) => {
                for (task, answer) in claim.tasks.iter().zip(answers) {
                    let task = tasks.entry(task.id).or_default();
                    match answer {
                        SettleAnswer::Recorded { .. } => task.recorded += 1,
                        SettleAnswer::Gone | SettleAnswer::AlreadyRecorded => {
                            assert!(task.unknown, "nobody else settles");
                            task.gone = true;
                        }
                        SettleAnswer::LeaseLost => continue,
                    }
                    seen.done.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
            Err(error) => {
                for task in &claim.tasks {
                    tasks.entry(task.id).or_default().unknown |= !error.wrote_nothing();
                }
                again(&error, &seen.worked_in_vain).await;
            }
        }
    }
}

/// Whether nothing waits and nothing is under a lease.
async fn is_empty(store: &dyn Store) -> bool {
    match store.stats().await {
        Ok(all) => all.iter().all(|one| one.ready + one.delayed + one.processing == 0),
        Err(_) => false,
    }
}
