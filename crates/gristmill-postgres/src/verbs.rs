//! The port's verbs, each handed to where it is done.

use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{
    Assignment, Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Diagnosis, Document, DocumentAnswer, DocumentChange,
    DocumentList, Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer,
    KeyStanding, Leadership, Limits, ListRequest, Minute, Operation, OperationReport, Page,
    Published, PutReport, PutRequest, Queue, QueueName, QueueStats, Result, Schedule,
    ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer, Settlement, Store, StoreError,
    SweepReport, Task, TaskId, Token, WakeMark, WorkerId, WorkerReport, WorkerView,
};

use crate::{PostgresStore, group, held, put};

impl PostgresStore {
    fn is_open(&self) -> Result<()> {
        if self.inner.pool.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.is_open()?;
        put::check(&request, &self.inner.limits)?;
        if request.atomic {
            // All or nothing concerns nobody else's tasks.
            return held::put(&self.inner, &request).await;
        }
        group::put(&self.inner, request).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        self.inner.claim(request).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        self.inner.settle(settlements).await
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.inner.extend(&extensions).await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.inner.checkpoint(&checkpoints).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        self.inner.endings(ids).await
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        self.is_open()?;
        self.inner.listen();
        self.inner.ear.wake.wait_ended(since, timeout.min(self.inner.limits.wait)).await;
        self.is_open()
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.inner.open_under(token).await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.inner.reclaim().await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.inner.sweep().await
    }

    async fn reach(&self) -> Result<()> {
        self.inner.pool.reach().await
    }

    fn mark(&self) -> WakeMark {
        self.inner.listen();
        self.inner.ear.wake.mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        self.is_open()?;
        self.inner.listen();
        self.inner.ear.wake.wait(queues, since, timeout.min(self.inner.limits.wait)).await;
        self.is_open()
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        self.inner.find(queue, keys).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.inner.get(id).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.inner.list(&request).await
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.inner.operate(&operation).await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.inner.import(&import).await
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.inner.declare_queue(declaration).await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        self.inner.override_queue(queue, Some((&settings, by))).await
    }

    async fn reset_queue(&self, queue: &QueueName, _by: &str) -> Result<Declared> {
        self.inner.override_queue(queue, None).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        self.inner.pause_queue(queue, paused, by).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.inner.register_contract(change).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.inner.queues().await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.inner.stats().await
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        self.inner.minutes(queue, back).await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.inner.declare_schedule(declaration).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.inner.schedules().await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        self.inner.remove_schedule(name).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        self.inner.pause_schedule(name, paused, by).await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.inner.fire(&fire).await
    }

    async fn campaign(&self, role: &str, who: &WorkerId, hold: Duration) -> Result<Leadership> {
        self.inner.campaign(role, who, hold).await
    }

    async fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        self.inner.resign(role, who).await
    }

    async fn report_worker(&self, report: WorkerReport) -> Result<()> {
        self.inner.report_worker(&report).await
    }

    async fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        self.inner.forget_worker(id).await
    }

    async fn workers(&self) -> Result<Vec<WorkerView>> {
        self.inner.workers().await
    }

    async fn publish_assignment(&self, assignment: Assignment) -> Result<Published> {
        self.inner.publish_assignment(&assignment).await
    }

    async fn assignment(&self) -> Result<Option<Assignment>> {
        self.inner.assignment().await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        self.inner.document(kind, name).await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        self.inner.documents(&list).await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        self.inner.save_document(change).await
    }

    async fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        self.inner.diagnose().await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_kill: true,
            survives_power_cut: true,
            several_processes: true,
            put_in_transaction: true,
            bound_subjects: true,
            atomic_follow_ups: true,
            exact_capacity: false,
            pushes_across_processes: true,
            passes_by: crate::hint::EVERY,
            meant_for: 100_000_000,
        }
    }

    fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    async fn close(&self) -> Result<()> {
        self.inner.notifier.last_words(&self.inner.pool).await;
        self.inner.pool.close();
        self.inner.ear.wake.wake_all();
        Ok(())
    }
}
