//! The verbs, each as a request.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use gristmill_core::{
    Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Diagnosis, Document, DocumentAnswer, DocumentChange,
    DocumentList, Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer,
    KeyStanding, Limits, ListRequest, Minute, Operation, OperationReport, Page, PutReport,
    PutRequest, Queue, QueueName, QueueStats, Result, Schedule, ScheduleDeclaration, ScheduleName,
    SettingsPatch, SettleAnswer, Settlement, Store, StoreError, SweepReport, Task, TaskId, Token,
    WakeMark,
};

use super::Remote;
use super::ask::{Manner, unread};
use super::pieces::{halfway, pieces};
use crate::wire::{
    Back, Change, Find, Ids, Named, One, PauseQueue, PauseSchedule, Reset, Under, Verb, Wait,
    Which, Wire, Woken, verbs,
};

/// How long one wait at the service lasts at most: what stands between cuts off what is
/// silent for longer.
const POLL: Duration = Duration::from_secs(25);
/// How long somebody rests whose mark is of a service that is gone: where several answer
/// in turns, every mark is.
const REST: Duration = Duration::from_millis(100);

impl Remote {
    async fn ask<V: Verb>(&self, asked: V::Asked) -> Result<V::Answer> {
        self.ask_as::<V>(asked, Manner::Ordinary).await
    }

    async fn ask_as<V: Verb>(&self, asked: V::Asked, manner: Manner) -> Result<V::Answer> {
        if *self.closed.borrow() {
            return Err(StoreError::Closed);
        }
        let (value, mark) = self.asker.ask(V::NAME, &asked.write(), V::REPEAT, manner).await?;
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).hear(mark.as_deref());
        V::Answer::read(value).map_err(|fault| unread(V::REPEAT, &fault))
    }

    /// Waits at the service, a while at a time.
    async fn wait_at<V>(
        &self,
        queues: &[QueueName],
        since: WakeMark,
        timeout: Duration,
    ) -> Result<()>
    where
        V: Verb<Asked = Wait, Answer = Woken>,
    {
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            let since = self.marks.lock().unwrap_or_else(PoisonError::into_inner).told(since);
            let Some(since) = since else {
                tokio::time::sleep(REST.min(left)).await;
                return Ok(());
            };
            let wait = left.min(POLL);
            let asked = Wait { queues: queues.to_vec(), since, timeout: wait };
            let mut closed = self.closed.subscribe();
            let woken = tokio::select! {
                woken = self.ask_as::<V>(asked, Manner::Waits(wait)) => woken?,
                _ = closed.wait_for(|closed| *closed) => return Err(StoreError::Closed),
            };
            if woken.woken {
                return Ok(());
            }
        }
    }
}

#[async_trait]
impl Store for Remote {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        let PutRequest { queue, tasks, atomic } = request;
        let all = tasks.len();
        let pieces = pieces(tasks, self.about.body_bytes);
        if atomic && pieces.len() > 1 {
            return Err(StoreError::invalid(format!(
                "{all} tasks put in one step are more than one request may have, which is {} bytes",
                self.about.body_bytes
            )));
        }
        let mut answers = Vec::with_capacity(all);
        for tasks in pieces {
            let piece = PutRequest { queue: queue.clone(), tasks, atomic };
            match self.ask::<verbs::Put>(piece).await {
                Ok(report) => answers.extend(report.answers),
                Err(error) if answers.is_empty() => return Err(error),
                Err(error) => return Err(halfway(error, answers.len(), all)),
            }
        }
        Ok(PutReport { answers })
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        self.ask::<verbs::ClaimTasks>(request).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        let all = settlements.len();
        let mut answers = Vec::with_capacity(all);
        for piece in pieces(settlements, self.about.body_bytes) {
            match self.ask::<verbs::Settle>(piece).await {
                Ok(answered) => answers.extend(answered),
                Err(error) if answers.is_empty() => return Err(error),
                Err(error) => return Err(halfway(error, answers.len(), all)),
            }
        }
        Ok(answers)
    }

    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>> {
        self.ask_as::<verbs::Extend>(extensions, Manner::Heartbeat).await
    }

    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        self.ask::<verbs::KeepCheckpoints>(checkpoints).await
    }

    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        self.ask::<verbs::Endings>(Ids { ids: ids.to_vec() }).await
    }

    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        self.wait_at::<verbs::WaitEnded>(&[], since, timeout).await
    }

    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        self.ask::<verbs::OpenUnder>(Under { token }).await
    }

    async fn reclaim(&self) -> Result<u64> {
        self.ask::<verbs::Reclaim>(()).await
    }

    async fn sweep(&self) -> Result<SweepReport> {
        self.ask_as::<verbs::Sweep>((), Manner::Heartbeat).await
    }

    async fn reach(&self) -> Result<()> {
        self.ask_as::<verbs::Reach>((), Manner::Heartbeat).await
    }

    fn mark(&self) -> WakeMark {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).mark()
    }

    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()> {
        self.wait_at::<verbs::WaitForWork>(queues, since, timeout).await
    }

    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        self.ask::<verbs::FindKeys>(Find { queue: queue.clone(), keys: keys.to_vec() }).await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        self.ask::<verbs::Get>(One { id }).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.ask::<verbs::List>(request).await
    }

    async fn operate(&self, operation: Operation) -> Result<OperationReport> {
        self.ask::<verbs::Operate>(operation).await
    }

    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        self.ask::<verbs::ImportTasks>(import).await
    }

    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        self.ask::<verbs::DeclareQueue>(declaration).await
    }

    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let change = Change { queue: queue.clone(), settings, by: by.to_owned() };
        self.ask::<verbs::OverrideQueue>(change).await
    }

    async fn reset_queue(&self, queue: &QueueName, by: &str) -> Result<Declared> {
        self.ask::<verbs::ResetQueue>(Reset { queue: queue.clone(), by: by.to_owned() }).await
    }

    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        let pause = PauseQueue { queue: queue.clone(), paused, by: by.to_owned() };
        self.ask::<verbs::SetQueuePaused>(pause).await
    }

    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer> {
        self.ask::<verbs::RegisterContract>(change).await
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        self.ask::<verbs::Queues>(()).await
    }

    async fn stats(&self) -> Result<Vec<QueueStats>> {
        self.ask::<verbs::Stats>(()).await
    }

    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>> {
        self.ask::<verbs::Minutes>(Back { queue: queue.clone(), back }).await
    }

    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule> {
        self.ask::<verbs::DeclareSchedule>(declaration).await
    }

    async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.ask::<verbs::Schedules>(()).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        self.ask::<verbs::RemoveSchedule>(Named { name: name.clone() }).await
    }

    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool> {
        let pause = PauseSchedule { name: name.clone(), paused, by: by.to_owned() };
        self.ask::<verbs::SetSchedulePaused>(pause).await
    }

    async fn fire(&self, fire: Fire) -> Result<FireAnswer> {
        self.ask::<verbs::FireSchedule>(fire).await
    }

    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let which = Which { kind: kind.to_owned(), name: name.to_owned() };
        self.ask::<verbs::OneDocument>(which).await
    }

    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>> {
        self.ask::<verbs::Documents>(list).await
    }

    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        self.ask::<verbs::SaveDocument>(change).await
    }

    async fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        self.ask::<verbs::Diagnose>(()).await
    }

    fn capabilities(&self) -> Capabilities {
        let theirs = self.about.capabilities;
        Capabilities {
            // Whoever asks the service is one of them, and it wakes them all; what others
            // do to its store beside it reaches it as that store has it.
            several_processes: true,
            pushes_across_processes: theirs.pushes_across_processes || !theirs.several_processes,
            // A transaction does not travel.
            put_in_transaction: false,
            ..theirs
        }
    }

    fn limits(&self) -> &Limits {
        &self.about.limits
    }

    /// The service's store is its own to end.
    async fn close(&self) -> Result<()> {
        self.closed.send_replace(true);
        self.asker.close();
        Ok(())
    }
}
