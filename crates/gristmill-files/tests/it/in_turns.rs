//! A store whose calls go to several handles of one folder in turns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{
    Assignment, Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Document, DocumentAnswer, DocumentChange, DocumentList,
    Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer, KeyStanding,
    Leadership, Limits, ListRequest, Minute, Operation, OperationReport, Page, Published,
    PutReport, PutRequest, Queue, QueueName, QueueStats, Result, Schedule, ScheduleDeclaration,
    ScheduleName, SettingsPatch, SettleAnswer, Settlement, Store, SweepReport, Task, TaskId, Token,
    WakeMark, WorkerId, WorkerReport, WorkerView,
};

/// Every so many calls a handle is replaced by one that reads the folder.
const RENEWED: usize = 17;

type Open = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

pub(crate) struct InTurns {
    handles: Mutex<Vec<Arc<dyn Store>>>,
    open: Open,
    calls: AtomicUsize,
    limits: Limits,
    capabilities: Capabilities,
}

impl std::fmt::Debug for InTurns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InTurns")
    }
}

impl InTurns {
    pub(crate) fn new(handles: Vec<Arc<dyn Store>>, open: Open) -> Self {
        let (limits, capabilities) = (handles[0].limits().clone(), handles[0].capabilities());
        let (handles, calls) = (Mutex::new(handles), AtomicUsize::new(0));
        InTurns { handles, open, calls, limits, capabilities }
    }

    fn turn(&self) -> Arc<dyn Store> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut handles = self.handles.lock().unwrap();
        let at = call % handles.len();
        if call % RENEWED == RENEWED - 1 {
            handles[at] = (self.open)();
        }
        handles[at].clone()
    }
}

#[async_trait]
impl Store for InTurns {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.turn().put(request).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        self.turn().claim(request).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        self.turn().settle(settlements).await
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.turn().extend(extensions).await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.turn().checkpoint(checkpoints).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        self.turn().endings(ids).await
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.turn().open_under(token).await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.turn().reclaim().await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.turn().sweep().await
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        self.turn().find(queue, keys).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.turn().get(id).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.turn().list(request).await
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.turn().operate(operation).await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.turn().import(import).await
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.turn().declare_queue(declaration).await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        self.turn().override_queue(queue, settings, by).await
    }

    async fn reset_queue(&self, queue: &QueueName, by: &str) -> Result<Declared> {
        self.turn().reset_queue(queue, by).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        self.turn().pause_queue(queue, paused, by).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.turn().register_contract(change).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.turn().queues().await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.turn().stats().await
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        self.turn().minutes(queue, back).await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.turn().declare_schedule(declaration).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.turn().schedules().await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        self.turn().remove_schedule(name).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        self.turn().pause_schedule(name, paused, by).await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.turn().fire(fire).await
    }

    async fn campaign(&self, role: &str, who: &WorkerId, hold: Duration) -> Result<Leadership> {
        self.turn().campaign(role, who, hold).await
    }

    async fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        self.turn().resign(role, who).await
    }

    async fn report_worker(&self, report: WorkerReport) -> Result<()> {
        self.turn().report_worker(report).await
    }

    async fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        self.turn().forget_worker(id).await
    }

    async fn workers(&self) -> Result<Vec<WorkerView>> {
        self.turn().workers().await
    }

    async fn publish_assignment(&self, assignment: Assignment) -> Result<Published> {
        self.turn().publish_assignment(assignment).await
    }

    async fn assignment(&self) -> Result<Option<Assignment>> {
        self.turn().assignment().await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        self.turn().document(kind, name).await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        self.turn().documents(list).await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        self.turn().save_document(change).await
    }

    fn mark(&self) -> WakeMark {
        self.handles.lock().unwrap()[0].mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        let first = self.handles.lock().unwrap()[0].clone();
        first.wait(queues, since, timeout).await
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn close(&self) -> Result<()> {
        let handles = self.handles.lock().unwrap().clone();
        for handle in handles {
            handle.close().await?;
        }
        Ok(())
    }
}
