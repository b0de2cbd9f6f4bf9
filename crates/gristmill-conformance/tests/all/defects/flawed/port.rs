//! The port of the flawed store: each verb goes to the store inside, or where
//! it goes wrong.

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

use super::{Defect, Flawed, lock};

#[async_trait]
impl Store for Flawed {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.flawed_put(request).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        self.write_the_unwritten().await?;
        self.flawed_claim(request).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        self.write_the_unwritten().await?;
        self.flawed_settle(settlements).await
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.write_the_unwritten().await?;
        self.flawed_extend(extensions).await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.write_the_unwritten().await?;
        self.flawed_checkpoint(checkpoints).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        self.write_the_unwritten().await?;
        let mut endings = self.inner().endings(ids).await?;
        let stale = lock(&self.shared.returned);
        for (id, ending) in ids.iter().zip(&mut endings) {
            if let (Ending::Done { value: Some(value) }, Some(last)) = (ending, stale.get(id)) {
                *value = last.clone();
            }
        }
        Ok(endings)
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        self.inner().wait_ended(since, timeout).await
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.write_the_unwritten().await?;
        self.inner().open_under(token).await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.write_the_unwritten().await?;
        self.flawed_reclaim().await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.write_the_unwritten().await?;
        self.flawed_sweep().await
    }

    fn mark(&self) -> WakeMark {
        self.inner().mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        self.write_the_unwritten().await?;
        if self.has(Defect::LosesWakeUps) {
            tokio::time::sleep(timeout).await;
            return self.inner().wait(queues, self.inner().mark(), Duration::ZERO).await;
        }
        match self.inner().wait(queues, since, timeout).await {
            Err(_) if self.defect == Some(Defect::KeepsWaitersAtTheClose) => Ok(()),
            answer => answer,
        }
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        self.write_the_unwritten().await?;
        self.inner().find(queue, keys).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.write_the_unwritten().await?;
        let mut task = self.inner().get(id).await?;
        task.iter_mut().for_each(|task| self.mistell(task));
        Ok(task)
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.write_the_unwritten().await?;
        let mut page = self.inner().list(request).await?;
        page.tasks.iter_mut().for_each(|task| self.mistell(task));
        Ok(page)
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.write_the_unwritten().await?;
        self.flawed_operate(operation).await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.write_the_unwritten().await?;
        self.inner().import(import).await
    }

    async fn declare_queue(&self, mut declaration: Declaration) -> Result<Declared> {
        self.mishear_declaration(&mut declaration);
        self.inner().declare_queue(declaration).await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let before = self.inner().queues().await?;
        let declared = self.inner().override_queue(queue, settings, by).await?;
        let fresh = before.iter().any(|one| one.name == *queue && one.overridden.is_none());
        if self.has(Defect::ForgetsOverrides) && fresh {
            self.inner().reset_queue(queue, by).await?;
        }
        Ok(declared)
    }

    async fn reset_queue(&self, queue: &QueueName, by: &str) -> Result<Declared> {
        self.inner().reset_queue(queue, by).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        if self.has(Defect::PausesOneProcess) {
            self.pause_here(queue, paused);
            return self.inner().queues().await.map(drop);
        }
        let paused = paused && !self.has(Defect::IgnoresPause);
        self.inner().pause_queue(queue, paused, by).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.write_the_unwritten().await?;
        self.inner().register_contract(change).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.inner().queues().await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.write_the_unwritten().await?;
        self.flawed_stats().await
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        self.inner().minutes(queue, back).await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.inner().declare_schedule(declaration).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.inner().schedules().await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        self.inner().remove_schedule(name).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        let paused = paused && !self.has(Defect::FiresWhilePaused);
        self.inner().pause_schedule(name, paused, by).await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.write_the_unwritten().await?;
        self.flawed_fire(fire).await
    }

    async fn campaign(&self, role: &str, who: &WorkerId, hold: Duration) -> Result<Leadership> {
        let held = self.inner().campaign(role, who, hold).await?;
        if self.has(Defect::GivesRolesToAll) {
            return Ok(Leadership { leader: who.clone(), remaining: hold, mine: true, ..held });
        }
        Ok(held)
    }

    async fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        if self.has(Defect::KeepsRolesAfterResigning) {
            return Ok(true);
        }
        self.inner().resign(role, who).await
    }

    async fn report_worker(&self, report: WorkerReport) -> Result<()> {
        self.inner().report_worker(report).await
    }

    async fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        self.inner().forget_worker(id).await
    }

    async fn workers(&self) -> Result<Vec<WorkerView>> {
        self.inner().workers().await
    }

    async fn publish_assignment(&self, assignment: Assignment) -> Result<Published> {
        self.inner().publish_assignment(assignment).await
    }

    async fn assignment(&self) -> Result<Option<Assignment>> {
        self.inner().assignment().await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        self.inner().document(kind, name).await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        self.inner().documents(list).await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        self.inner().save_document(change).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { survives_kill: true, several_processes: true, ..self.inner().capabilities() }
    }

    fn limits(&self) -> &Limits {
        self.inner().limits()
    }

    async fn close(&self) -> Result<()> {
        self.inner().close().await
    }
}
