//! A correct store in a wrapper that breaks one rule. The memory store inside
//! stays as it is shipped; everything wrong is done here.
//!
//! All handles of one harness share the store inside, so that they pass for
//! several processes, and what one handle keeps to itself is lost when it is
//! killed.

mod asked;
mod claim;
mod clock;
mod port;
mod put;
mod settle;
mod told;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use async_trait::async_trait;
use gristmill_conformance::Harness;
use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::{
    ClaimedTask, Clock, Limits, ManualClock, Payload, ProgressView, PutRequest, QueueName,
    Settlement, Store, SystemClock, TaskId, Token,
};

use super::defect::Defect;
use clock::SkewedClock;

/// Opens flawed stores.
pub(crate) struct FlawedHarness {
    defect: Option<Defect>,
    shared: Mutex<Option<Arc<Shared>>>,
}

/// What all handles of one store have in common.
#[derive(Debug)]
struct Shared {
    inner: MemoryStore,
    clock: Arc<SkewedClock>,
    /// The token of each task's last claim.
    tokens: Mutex<HashMap<TaskId, Token>>,
    /// Callers' ids by task, and how often each was forgotten.
    ids: Mutex<HashMap<TaskId, String>>,
    forgotten: Mutex<HashMap<String, u32>>,
    /// What was returned last of each task.
    returned: Mutex<HashMap<TaskId, Payload>>,
    /// How far each task was when somebody last said so.
    told: Mutex<HashMap<TaskId, ProgressView>>,
    /// The largest id given so far.
    last_id: AtomicI64,
    /// How many tasks were settled as done, and how many were put.
    done: AtomicU64,
    puts: AtomicU64,
    /// Keys that were put lately.
    cache: Mutex<HashMap<(String, String), (TaskId, Instant)>>,
    /// What the claim before was given.
    given: Mutex<Option<(QueueName, ClaimedTask)>>,
}

/// One handle.
#[derive(Debug)]
struct Flawed {
    shared: Arc<Shared>,
    defect: Option<Defect>,
    /// Acknowledged, and nowhere else yet.
    unwritten: Mutex<Vec<PutRequest>>,
    unsettled: Mutex<Vec<Settlement>>,
    /// Queues that this one has stopped.
    paused: Mutex<HashSet<QueueName>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder panics")
}

impl Flawed {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn inner(&self) -> &MemoryStore {
        &self.shared.inner
    }
}

impl FlawedHarness {
    pub(crate) fn new(defect: Option<Defect>) -> Self {
        FlawedHarness { defect, shared: Mutex::default() }
    }

    fn handle(&self) -> Option<Arc<dyn Store>> {
        let shared = lock(&self.shared).clone()?;
        Some(Arc::new(Flawed {
            shared,
            defect: self.defect,
            unwritten: Mutex::default(),
            unsettled: Mutex::default(),
            paused: Mutex::default(),
        }))
    }
}

#[async_trait]
impl Harness for FlawedHarness {
    fn imports(&self) -> bool {
        true
    }

    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        self.begin(clock, limits);
        self.handle().expect("it was just opened")
    }

    async fn reopen(&self, _: Arc<ManualClock>, _: Limits) -> Option<Arc<dyn Store>> {
        self.handle()
    }
}

impl FlawedHarness {
    /// Handles of one store on the machine's clock, as of so many processes.
    pub(crate) fn live(&self, handles: usize) -> Vec<Arc<dyn Store>> {
        self.begin(Arc::new(SystemClock::default()), Limits::default());
        (0..handles).filter_map(|_| self.handle()).collect()
    }

    fn begin(&self, clock: Arc<dyn Clock>, limits: Limits) {
        let clock = Arc::new(SkewedClock::new(clock));
        let options = MemoryOptions { clock: clock.clone(), limits, ..MemoryOptions::default() };
        *lock(&self.shared) = Some(Arc::new(Shared {
            inner: MemoryStore::new(options),
            clock,
            tokens: Mutex::default(),
            ids: Mutex::default(),
            forgotten: Mutex::default(),
            returned: Mutex::default(),
            told: Mutex::default(),
            last_id: AtomicI64::default(),
            done: AtomicU64::default(),
            puts: AtomicU64::default(),
            cache: Mutex::default(),
            given: Mutex::default(),
        }));
    }
}

/// Lets everybody else have a good many turns.
async fn give_way() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}
