//! The verbs of the port, each handed to the writer or to a reader.

use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{
    Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Diagnosis, Document, DocumentAnswer, DocumentChange,
    DocumentList, Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer,
    KeyStanding, Limits, ListRequest, Minute, Operation, OperationReport, Page, PutReport,
    PutRequest, Queue, QueueName, QueueStats, Result, Schedule, ScheduleDeclaration, ScheduleName,
    SettingsPatch, SettleAnswer, Settlement, Store, SweepReport, Task, TaskId, Token, WakeMark,
};

use crate::SqliteStore;
use crate::ask::Weight;
use crate::lease::Lease;
use crate::read::Lister;
use crate::{documents, endings, schedules, stats, sweep};

#[async_trait]
impl Store for SqliteStore {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        let weight = Weight::Queues(vec![request.queue.clone()], Vec::new());
        self.write(weight, move |write| write.put(&request)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        let weight = Weight::Claim(request.queue.clone());
        self.write(weight, move |write| write.claim(&request)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        let weight = weight_of(&settlements);
        self.write(weight, move |write| write.settle(&settlements)).await
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.write(Weight::Light, move |write| write.extend(&extensions)).await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        let tokens = checkpoints.iter().map(|checkpoint| checkpoint.token).collect();
        let weight = Weight::Queues(Vec::new(), tokens);
        self.write(weight, move |write| write.checkpoint(&checkpoints)).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        let (ids, now, page) = (ids.to_vec(), self.clock.now(), self.limits.page);
        self.read(move |db, _| endings::read(db, &ids, now, page)).await
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        self.is_open()?;
        let attendance = self.attend();
        self.wake.wait_ended(since, timeout.min(self.limits.wait)).await;
        drop(attendance);
        self.is_open()
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.read(move |db, _| {
            let lease = Lease::load(db, token)?;
            let mut ids = lease.map(|lease| lease.ids).unwrap_or_default();
            ids.sort_unstable();
            Ok(ids.into_iter().map(TaskId).collect())
        })
        .await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.write(Weight::Light, |write| Ok(write.reclaim(None)?.0)).await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        let missed = self.read(|db, _| sweep::missed(db)).await?;
        self.write(Weight::Light, move |write| write.sweep(&missed)).await
    }

    fn mark(&self) -> WakeMark {
        self.wake.mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        self.is_open()?;
        let attendance = self.attend();
        let timeout = timeout.min(self.limits.wait);
        self.wake.wait(queues, since, timeout).await;
        drop(attendance);
        self.is_open()
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        let (queue, keys) = (queue.clone(), keys.to_vec());
        self.read(move |db, known| Lister::new(db, known).find(&queue, &keys)).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.read(move |db, known| Lister::new(db, known).get(id)).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        let limits = self.limits.clone();
        self.read(move |db, known| Lister::new(db, known).list(&request, &limits)).await
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.write(Weight::Full, move |write| write.operate(&operation)).await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.write(Weight::Full, move |write| write.import(&import)).await
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.write(Weight::Full, move |write| write.declare_queue(&declaration)).await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let (queue, by) = (queue.clone(), by.to_owned());
        self.write(Weight::Full, move |write| write.override_queue(&queue, &settings, &by)).await
    }

    async fn reset_queue(&self, queue: &QueueName, _by: &str) -> Result<Declared> {
        let queue = queue.clone();
        self.write(Weight::Full, move |write| write.reset_queue(&queue)).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        let (queue, by) = (queue.clone(), by.to_owned());
        self.write(Weight::Full, move |write| write.pause_queue(&queue, paused, &by)).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.write(Weight::Full, move |write| write.register_contract(&change)).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.read(|db, _| stats::queues(db)).await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        let now = self.clock.now();
        let (stats, lagging) = self.read(move |db, _| stats::stats(db, now)).await?;
        if !lagging {
            return Ok(stats);
        }
        // Nobody swept lately. Numbers that lag are still an answer when the
        // file cannot be written now.
        if let Err(error) = self.write(Weight::Light, |write| write.promote()).await {
            tracing::debug!(error = %error.whole(), "tasks that fell due are still counted as delayed");
            return Ok(stats);
        }
        let (stats, _) = self.read(move |db, _| stats::stats(db, now)).await?;
        Ok(stats)
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        let (queue, now) = (queue.clone(), self.clock.now());
        self.read(move |db, known| stats::minutes(db, known, &queue, back, now)).await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.write(Weight::Full, move |write| write.declare_schedule(&declaration)).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.read(|db, _| schedules::schedules(db)).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        let name = name.clone();
        self.write(Weight::Full, move |write| write.remove_schedule(&name)).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        let (name, by) = (name.clone(), by.to_owned());
        self.write(Weight::Full, move |write| write.pause_schedule(&name, paused, &by)).await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.write(Weight::Full, move |write| write.fire(&fire)).await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        let now = self.clock.now();
        self.read(move |db, _| documents::get(db, &kind, &name, now)).await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        let now = self.clock.now();
        self.read(move |db, _| documents::list(db, &list, now)).await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        let weight = if change.durable { Weight::Full } else { Weight::Light };
        self.write(weight, move |write| write.save_document(&change)).await
    }

    async fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        self.look_over().await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_kill: true,
            survives_power_cut: true,
            several_processes: true,
            put_in_transaction: true,
            bound_subjects: true,
            atomic_follow_ups: true,
            exact_capacity: true,
            pushes_across_processes: false,
            passes_by: Duration::ZERO,
            meant_for: 10_000_000,
        }
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn flush_limit(&self) -> Option<usize> {
        self.crowd.flush_limit()
    }

    async fn close(&self) -> Result<()> {
        self.end().await
    }
}

/// What the answers to these settlements must survive.
fn weight_of(settlements: &[Settlement]) -> Weight {
    let mut tokens: Vec<Token> = Vec::new();
    let mut queues: Vec<QueueName> = Vec::new();
    for settlement in settlements {
        if tokens.last() != Some(&settlement.token) {
            tokens.push(settlement.token);
        }
        queues.extend(settlement.follow_ups.iter().map(|next| next.queue.clone()));
    }
    Weight::Queues(queues, tokens)
}
