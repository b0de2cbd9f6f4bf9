//! Who puts and who works while servers fail, and what each of them was told: the
//! verdict rests on these records alone.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, NewTask, Outcome, Payload, PutAnswer, PutRequest, QueueName, SettleAnswer,
    Settlement, Store, StoreError, Token, WorkerId,
};

/// Nothing may take longer; what does is counted, and asked again.
const HUNG: Duration = Duration::from_secs(60);
/// After a failure, so that a store that is away is not asked without a pause.
const PAUSE: Duration = Duration::from_millis(20);
const LEASE: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(crate) struct Records {
    next: AtomicU64,
    /// Each acknowledged put, when it was sent and when it was acknowledged.
    pub(crate) acknowledged: Mutex<Vec<(u64, Instant, Instant)>>,
    /// Tokens under which a task was accepted as done.
    pub(crate) done: Mutex<HashMap<u64, HashSet<Token>>>,
    /// Tasks that a worker was told are gone, after it had asked once before.
    pub(crate) gone: Mutex<HashSet<u64>>,
    pub(crate) unknown: AtomicU64,
    pub(crate) unavailable: AtomicU64,
    pub(crate) hung: AtomicU64,
    pub(crate) lease_lost: AtomicU64,
    pub(crate) put_enough: AtomicBool,
    pub(crate) worked_enough: AtomicBool,
}

impl Records {
    /// Asks until there is an answer.
    async fn answer<T, F>(&self, ask: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        loop {
            match tokio::time::timeout(HUNG, ask()).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(StoreError::Unknown(_))) => self.unknown.fetch_add(1, Ordering::Relaxed),
                Ok(Err(_)) => self.unavailable.fetch_add(1, Ordering::Relaxed),
                Err(_) => self.hung.fetch_add(1, Ordering::Relaxed),
            };
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// When a put that was sent after `event` was first acknowledged.
    pub(crate) fn back_after(&self, event: Instant) -> Option<Duration> {
        let acknowledged = self.acknowledged.lock().unwrap();
        let later = acknowledged.iter().rev().take_while(|(_, _, told)| *told > event);
        later.filter(|(_, sent, _)| *sent > event).map(|(_, _, told)| *told - event).min()
    }

    pub(crate) fn acknowledged_within(&self, from: Instant, to: Instant) -> usize {
        let acknowledged = self.acknowledged.lock().unwrap();
        acknowledged.iter().filter(|(_, _, told)| *told >= from && *told < to).count()
    }
}

/// Puts one task after the other, each under an id of its own, and repeats what is
/// not known to stand.
pub(crate) async fn put(
    store: Arc<dyn Store>,
    queue: QueueName,
    records: Arc<Records>,
    pace: Duration,
) {
    while !records.put_enough.load(Ordering::Relaxed) {
        let number = records.next.fetch_add(1, Ordering::Relaxed);
        let mut task = NewTask::new(Payload::raw(number.to_string()));
        task.id = Some(number.to_string());
        let start = Instant::now();
        let (sent, answer) = records
            .answer(|| {
                let sent = Instant::now();
                let request =
                    PutRequest { queue: queue.clone(), tasks: vec![task.clone()], atomic: false };
                let store = store.clone();
                async move { Ok((sent, store.put(request).await?.answers)) }
            })
            .await;
        match answer.first() {
            Some(PutAnswer::Enqueued { .. } | PutAnswer::Duplicate { .. }) => {
                let entry = (number, sent, Instant::now());
                records.acknowledged.lock().unwrap().push(entry);
            }
            other => panic!("{number}: {other:?}"),
        }
        tokio::time::sleep(pace.saturating_sub(start.elapsed())).await;
    }
}

/// Claims and settles as done. With a `delay` longer than the lease what it says is
/// stale, and must not be accepted beside another's.
pub(crate) async fn work(
    store: Arc<dyn Store>,
    queue: QueueName,
    records: Arc<Records>,
    max: usize,
    delay: Option<Duration>,
) {
    let worker = WorkerId::new(&format!("w{max}")).expect("a name");
    while !records.worked_enough.load(Ordering::Relaxed) {
        let lease = if delay.is_some() { Duration::from_secs(2) } else { LEASE };
        // A claim that may have happened is not asked for again: its tasks come
        // back by themselves.
        let claimed = records
            .answer(|| {
                let (store, queue, worker) = (store.clone(), queue.clone(), worker.clone());
                async move {
                    let (lease, token) = (Some(lease), Token::random()?);
                    let source = None;
                    store.claim(ClaimRequest { queue, max, lease, worker, source, token }).await
                }
            })
            .await;
        if claimed.tasks.is_empty() {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        let settlements: Vec<Settlement> = claimed
            .tasks
            .iter()
            .map(|task| Settlement::new(task.id, claimed.token, Outcome::Done))
            .collect();
        let settle = || {
            let (store, settlements) = (store.clone(), settlements.clone());
            async move { store.settle(settlements).await }
        };
        let answers = records.answer(settle).await;
        for (task, answer) in claimed.tasks.iter().zip(answers) {
            let number = std::str::from_utf8(&task.payload.bytes).unwrap().parse().unwrap();
            match answer {
                SettleAnswer::Recorded { .. } | SettleAnswer::AlreadyRecorded => {
                    records.done.lock().unwrap().entry(number).or_default().insert(claimed.token);
                }
                SettleAnswer::Gone => {
                    records.gone.lock().unwrap().insert(number);
                }
                SettleAnswer::LeaseLost => {
                    records.lease_lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}
