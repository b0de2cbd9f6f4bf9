//! The memory store: bounded, for tests and for work that may be lost, and the
//! executable specification that the other stores are compared with.
//!
//! One lock, plain collections, one file a verb. Where another store needs an
//! index, this one has an ordered set with the same order.

mod buckets;
mod changes;
mod checkpoint;
mod claim;
mod clamp;
mod declare;
mod documents;
mod endings;
mod facts;
mod fair;
mod import;
mod lane;
mod operate;
mod pick;
mod put;
mod read;
mod record;
mod reported;
mod schedules;
mod settle;
mod state;
mod sweep;
mod tracked;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, Clock, ContractAnswer,
    ContractChange, Declaration, Declared, Document, DocumentAnswer, DocumentChange, DocumentList,
    Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer, KeyStanding, Limits,
    ListRequest, Minute, Operation, OperationReport, Page, PutReport, PutRequest, Queue, QueueName,
    QueueStats, Result, Schedule, ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer,
    Settlement, Store, StoreError, SweepReport, SystemClock, Task, TaskId, Timestamp, Token,
    WakeMark, WakeSignal,
};

pub use changes::Changes;
pub use endings::EndingRecord;
pub use record::{LeaseRecord, TaskRecord};
pub use state::{Remembered, State};

/// Tasks a memory store holds unless set.
pub const MAX_TASKS: u64 = 100_000;
/// Bytes of payload a memory store holds unless set.
pub const MAX_BYTES: usize = 64 << 20;

/// How a memory store is made.
#[derive(Debug, Clone)]
pub struct MemoryOptions {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Its limits.
    pub limits: Limits,
    /// Most tasks in any state, over all queues.
    pub max_tasks: u64,
    /// Most payload bytes, over all queues.
    pub max_bytes: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        MemoryOptions {
            clock: Arc::new(SystemClock::default()),
            limits: Limits::default(),
            max_tasks: MAX_TASKS,
            max_bytes: MAX_BYTES,
        }
    }
}

/// Tasks in this process's memory: gone when it ends.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    limits: Limits,
    state: Mutex<State>,
    wake: WakeSignal,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(options: MemoryOptions) -> Self {
        let MemoryOptions { max_tasks, max_bytes, .. } = options;
        let state = State::new(options.limits.clone(), max_tasks, max_bytes, max_bytes);
        MemoryStore {
            clock: options.clock,
            limits: options.limits,
            state: Mutex::new(state),
            wake: WakeSignal::default(),
        }
    }

    /// The state under its lock, for reading.
    fn read(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(StoreError::Closed) } else { Ok(state) }
    }

    /// Runs a change under the lock, at the clock's now, then wakes whoever
    /// waits for what it made claimable.
    fn write<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> Result<T>) -> Result<T> {
        let (answer, woken, ended) = {
            let mut state = self.read()?;
            // The time is read under the lock, so that changes are in the
            // order of their times.
            let now = self.clock.now();
            state.observe(&*self.clock, Duration::ZERO);
            (change(&mut state, now), state.take_woken(), state.take_ended())
        };
        if !woken.is_empty() {
            self.wake.wake(&woken);
        }
        if ended {
            self.wake.wake_ended();
        }
        answer
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.write(|state, now| state.put(request, now))
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        self.write(|state, now| state.claim(request, now))
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        self.write(|state, now| state.settle(settlements, now))
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.write(|state, now| state.extend(&extensions, now))
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.write(|state, _| Ok(state.checkpoint(&checkpoints)))
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        let now = self.clock.now();
        self.read()?.endings(ids, now)
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        drop(self.read()?);
        self.wake.wait_ended(since, timeout.min(self.limits.wait)).await;
        self.read().map(drop)
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        Ok(self.read()?.open_under(token))
    }

    async fn reclaim(&self) -> Result<u64> {
        self.write(|state, now| Ok(state.reclaim(None, now).0))
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.write(|state, now| Ok(state.sweep(now)))
    }

    fn mark(&self) -> WakeMark {
        self.wake.mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        drop(self.read()?);
        self.wake.wait(queues, since, timeout.min(self.limits.wait)).await;
        self.read().map(drop)
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        self.read()?.find(queue, keys)
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        Ok(self.read()?.get(id))
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        Ok(self.read()?.list(&request))
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.write(|state, now| state.operate(&operation, now))
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.write(|state, now| state.import(import, now))
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.write(|state, now| state.declare_queue(declaration, now))
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        self.write(|state, now| state.override_queue(queue, &settings, by, now))
    }

    async fn reset_queue(&self, queue: &QueueName, _by: &str) -> Result<Declared> {
        self.write(|state, _| state.reset_queue(queue))
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        self.write(|state, _| state.pause_queue(queue, paused, by))
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.write(|state, _| state.register_contract(change))
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        Ok(self.read()?.queues.values().map(|q| q.queue.clone()).collect())
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.write(|state, now| Ok(state.stats(now)))
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        let now = self.clock.now();
        self.read()?.minutes(queue, back, now)
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.write(|state, now| state.declare_schedule(declaration, now))
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        Ok(self.read()?.schedules.values().cloned().collect())
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        self.write(|state, _| Ok(state.remove_schedule(name)))
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        self.write(|state, now| Ok(state.pause_schedule(name, paused, by, now)))
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.write(|state, now| state.fire(fire, now))
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let now = self.clock.now();
        Ok(self.read()?.read_document(kind, name, now))
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        let now = self.clock.now();
        Ok(self.read()?.documents(&list, now))
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        self.write(|state, now| state.save_document(change, now))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_kill: false,
            survives_power_cut: false,
            several_processes: false,
            put_in_transaction: false,
            bound_subjects: false,
            atomic_follow_ups: true,
            exact_capacity: true,
            pushes_across_processes: false,
            passes_by: Duration::ZERO,
            meant_for: MAX_TASKS,
        }
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn close(&self) -> Result<()> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.wake.wake_all();
        Ok(())
    }
}
