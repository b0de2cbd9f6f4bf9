//! The port of the faulty store: each verb goes to the store inside, or wrong.

use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{
    Assignment, Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Diagnosis, Document, DocumentAnswer, DocumentChange,
    DocumentList, Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer,
    KeyStanding, Leadership, Limits, ListRequest, Minute, Operation, OperationReport, Page,
    Published, PutReport, PutRequest, Queue, QueueName, QueueStats, Result, Schedule,
    ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer, Settlement, Store, SweepReport,
    Task, TaskId, Token, WakeMark, WorkerId, WorkerReport, WorkerView,
};

use super::{Faulty, Verb};

#[async_trait]
impl Store for Faulty {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.call(Verb::Put, self.inner.put(request)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        let claim = self.call(Verb::Claim, self.inner.claim(request)).await?;
        self.forget(&claim).await?;
        Ok(claim)
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        self.call(Verb::Settle, self.inner.settle(settlements)).await
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.call(Verb::Extend, self.inner.extend(extensions)).await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.call(Verb::Checkpoint, self.inner.checkpoint(checkpoints)).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        self.call(Verb::Endings, self.inner.endings(ids)).await
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        self.call(Verb::WaitEnded, self.inner.wait_ended(since, timeout)).await
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.call(Verb::Get, self.inner.open_under(token)).await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.call(Verb::Reclaim, self.inner.reclaim()).await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.call(Verb::Sweep, self.inner.sweep()).await
    }

    async fn reach(&self) -> Result<()> {
        self.call(Verb::Reach, self.inner.reach()).await
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        self.call(Verb::Wait, self.inner.wait(queues, since, timeout)).await
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        self.call(Verb::Find, self.inner.find(queue, keys)).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.call(Verb::Get, self.inner.get(id)).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.call(Verb::List, self.inner.list(request)).await
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.call(Verb::Operate, self.inner.operate(operation)).await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.call(Verb::Import, self.inner.import(import)).await
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.call(Verb::DeclareQueue, self.inner.declare_queue(declaration)).await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        self.call(Verb::OverrideQueue, self.inner.override_queue(queue, settings, by)).await
    }

    async fn reset_queue(&self, queue: &QueueName, by: &str) -> Result<Declared> {
        self.call(Verb::ResetQueue, self.inner.reset_queue(queue, by)).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        self.call(Verb::PauseQueue, self.inner.pause_queue(queue, paused, by)).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.call(Verb::RegisterContract, self.inner.register_contract(change)).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.call(Verb::Queues, self.inner.queues()).await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.call(Verb::Stats, self.inner.stats()).await
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        self.call(Verb::Minutes, self.inner.minutes(queue, back)).await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.call(Verb::DeclareSchedule, self.inner.declare_schedule(declaration)).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.call(Verb::Schedules, self.inner.schedules()).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        self.call(Verb::RemoveSchedule, self.inner.remove_schedule(name)).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        self.call(Verb::PauseSchedule, self.inner.pause_schedule(name, paused, by)).await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.call(Verb::Fire, self.inner.fire(fire)).await
    }

    async fn campaign(&self, role: &str, who: &WorkerId, hold: Duration) -> Result<Leadership> {
        self.call(Verb::Campaign, self.inner.campaign(role, who, hold)).await
    }

    async fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        self.call(Verb::Resign, self.inner.resign(role, who)).await
    }

    async fn report_worker(&self, report: WorkerReport) -> Result<()> {
        self.call(Verb::ReportWorker, self.inner.report_worker(report)).await
    }

    async fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        self.call(Verb::ForgetWorker, self.inner.forget_worker(id)).await
    }

    async fn workers(&self) -> Result<Vec<WorkerView>> {
        self.call(Verb::Workers, self.inner.workers()).await
    }

    async fn publish_assignment(&self, assignment: Assignment) -> Result<Published> {
        self.call(Verb::PublishAssignment, self.inner.publish_assignment(assignment)).await
    }

    async fn assignment(&self) -> Result<Option<Assignment>> {
        self.call(Verb::Assignment, self.inner.assignment()).await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        self.call(Verb::Document, self.inner.document(kind, name)).await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        self.call(Verb::Documents, self.inner.documents(list)).await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        self.call(Verb::SaveDocument, self.inner.save_document(change)).await
    }

    async fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        self.call(Verb::Diagnose, self.inner.diagnose()).await
    }

    async fn close(&self) -> Result<()> {
        self.call(Verb::Close, self.inner.close()).await
    }

    fn mark(&self) -> WakeMark {
        self.inner.mark()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn limits(&self) -> &Limits {
        self.inner.limits()
    }
}
