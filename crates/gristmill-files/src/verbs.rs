//! The verbs of the port. The rules are the ledger's; here is what each answer
//! must survive, and where payloads come from.

use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::{
    Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Document, DocumentAnswer, DocumentChange, DocumentList,
    Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer, KeyStanding, Limits,
    ListRequest, Minute, Operation, OperationReport, Page, PutReport, PutRequest, Queue, QueueName,
    QueueStats, Result, Schedule, ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer,
    Settlement, Store, SweepReport, Task, TaskId, Token, WakeMark,
};

use crate::FilesStore;
use crate::ask::Desk;
use crate::persist::Sync::{Full, Light};

#[async_trait]
impl Store for FilesStore {
    // What a put or settlement must survive follows from the queues whose
    // tasks' files it changes, so neither asks for more here.
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.ask(Light, move |desk| {
            let now = desk.now;
            desk.puts += request.tasks.len();
            desk.ledger().put(request.clone(), now)
        })
        .await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        self.ask(Light, move |desk| claim(desk, &request)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        self.ask(Light, move |desk| {
            let now = desk.now;
            desk.ledger().settle(settlements.clone(), now)
        })
        .await
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.ask(Light, move |desk| {
            let now = desk.now;
            desk.ledger().extend(&extensions, now)
        })
        .await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.ask(Light, move |desk| Ok(desk.ledger().checkpoint(&checkpoints))).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        let ids = ids.to_vec();
        self.ask(Light, move |desk| {
            let now = desk.now;
            desk.ledger().endings(&ids, now)
        })
        .await
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        self.is_open()?;
        let attendance = self.attend();
        self.wake.wait_ended(since, timeout.min(self.limits.wait)).await;
        drop(attendance);
        self.is_open()
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.ask(Light, move |desk| Ok(desk.ledger().open_under(token))).await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.ask(Light, |desk| {
            let now = desk.now;
            Ok(desk.ledger().reclaim(None, now).0)
        })
        .await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.ask(Light, |desk| {
            let now = desk.now;
            Ok(desk.ledger().sweep(now))
        })
        .await
    }

    fn mark(&self) -> WakeMark {
        self.wake.mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        self.is_open()?;
        let attendance = self.attend();
        self.wake.wait(queues, since, timeout.min(self.limits.wait)).await;
        drop(attendance);
        self.is_open()
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        let (queue, keys) = (queue.clone(), keys.to_vec());
        self.ask(Light, move |desk| desk.ledger().find(&queue, &keys)).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.ask(Light, move |desk| {
            let found = desk.ledger().get(id);
            Ok(with_payloads(desk, found.into_iter().collect())?.pop())
        })
        .await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.ask(Light, move |desk| {
            let page = desk.ledger().list(&request);
            let tasks = with_payloads(desk, page.tasks)?;
            Ok(Page { tasks, ..page })
        })
        .await
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.ask(Full, move |desk| {
            let now = desk.now;
            desk.ledger().operate(&operation, now)
        })
        .await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.ask(Light, move |desk| {
            let now = desk.now;
            desk.ledger().import(import.clone(), now)
        })
        .await
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.ask(Full, move |desk| {
            let now = desk.now;
            desk.ledger().declare_queue(declaration.clone(), now)
        })
        .await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let (queue, by) = (queue.clone(), by.to_owned());
        self.ask(Full, move |desk| {
            let now = desk.now;
            desk.ledger().override_queue(&queue, &settings, &by, now)
        })
        .await
    }

    async fn reset_queue(&self, queue: &QueueName, _by: &str) -> Result<Declared> {
        let queue = queue.clone();
        self.ask(Full, move |desk| desk.ledger().reset_queue(&queue)).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        let (queue, by) = (queue.clone(), by.to_owned());
        self.ask(Full, move |desk| desk.ledger().pause_queue(&queue, paused, &by)).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.ask(Full, move |desk| desk.ledger().register_contract(change.clone())).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.ask(Light, |desk| Ok(desk.ledger().all_queues().cloned().collect())).await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.ask(Light, |desk| {
            let now = desk.now;
            Ok(desk.ledger().stats(now))
        })
        .await
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        let queue = queue.clone();
        self.ask(Light, move |desk| {
            let now = desk.now;
            desk.ledger().minutes(&queue, back, now)
        })
        .await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.ask(Full, move |desk| {
            let now = desk.now;
            desk.ledger().declare_schedule(declaration.clone(), now)
        })
        .await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.ask(Light, |desk| Ok(desk.ledger().all_schedules().cloned().collect())).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        let name = name.clone();
        self.ask(Full, move |desk| Ok(desk.ledger().remove_schedule(&name))).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        let (name, by) = (name.clone(), by.to_owned());
        self.ask(Full, move |desk| {
            let now = desk.now;
            Ok(desk.ledger().pause_schedule(&name, paused, &by, now))
        })
        .await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.ask(Full, move |desk| {
            let now = desk.now;
            desk.ledger().fire(fire.clone(), now)
        })
        .await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        self.ask(Light, move |desk| {
            let now = desk.now;
            Ok(desk.ledger().read_document(&kind, &name, now))
        })
        .await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        self.ask(Light, move |desk| {
            let now = desk.now;
            Ok(desk.ledger().documents(&list, now))
        })
        .await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        let sync = if change.durable { Full } else { Light };
        self.ask(sync, move |desk| {
            let now = desk.now;
            desk.ledger().save_document(change.clone(), now)
        })
        .await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_kill: true,
            survives_power_cut: true,
            several_processes: true,
            put_in_transaction: false,
            bound_subjects: false,
            atomic_follow_ups: true,
            exact_capacity: true,
            pushes_across_processes: false,
            passes_by: Duration::ZERO,
            meant_for: 100_000,
        }
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn flush_limit(&self) -> Option<usize> {
        Some(self.crowd.flush_limit_always())
    }

    async fn close(&self) -> Result<()> {
        self.end().await
    }
}

/// A claim with its payloads. A task whose file is damaged is set aside, and
/// its neighbours are claimed all the same.
fn claim(desk: &mut Desk<'_>, request: &ClaimRequest) -> Result<Claim> {
    let now = desk.now;
    let mut claim = desk.ledger().claim(request.clone(), now)?;
    // A slot that a power cut gives back could be held twice, and a number that
    // it gives back is no fence.
    let queue = desk.ledger().queue_named(request.queue.as_str());
    let durable = queue.is_some_and(|queue| queue.settings.claims_are_durable());
    for mut task in std::mem::take(&mut claim.tasks) {
        if let Some(bytes) = desk.payload(task.id, task.payload.bytes.clone())?
            && let Some(kept) = desk.kept(task.id, task.checkpoint.take())?
        {
            task.payload.bytes = bytes;
            task.checkpoint = kept;
            claim.tasks.push(task);
        }
    }
    if durable && !claim.tasks.is_empty() {
        desk.least = Full;
    }
    Ok(claim)
}

/// Tasks with their payloads; those whose file is damaged are set aside.
fn with_payloads(desk: &mut Desk<'_>, tasks: Vec<Task>) -> Result<Vec<Task>> {
    let mut whole = Vec::with_capacity(tasks.len());
    for mut task in tasks {
        if let Some(bytes) = desk.payload(task.id, task.payload.bytes.clone())?
            && let Some(kept) = desk.kept(task.id, task.checkpoint.take())?
        {
            task.payload.bytes = bytes;
            task.checkpoint = kept;
            whole.push(task);
        }
    }
    Ok(whole)
}
