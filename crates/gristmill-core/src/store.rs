//! The port: the verbs every store offers, each told by what is true
//! afterwards.
//!
//! Batch-shaped and object-safe: clients and workers hold an
//! `Arc<dyn Store>` and no type parameter of a store. Only the store's clock
//! decides; deadlines leave it as durations. Every verb either happens whole
//! or not at all, and when it returns an error other than
//! [`StoreError::Unknown`], it did not happen.
//!
//! Eighteen verbs are about tasks, and never more than twenty; what the system agrees on beside
//! them (who leads, who works, what the manager said, operations under way) is kept by the
//! three about documents, and decided by who asks. Queues and schedules have thirteen of
//! their own; the rest is about the store itself.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer,
    ContractChange, Declaration, Declared, Diagnosis, Document, DocumentAnswer, DocumentChange,
    DocumentList, Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer, Limits,
    ListRequest, Minute, Operation, OperationReport, Page, PutReport, PutRequest, Queue, QueueName,
    QueueStats, Result, Schedule, ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer,
    Settlement, State, StoreError, SweepReport, Task, TaskId, Token, WakeMark,
};

/// Which of a key's two places a task holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StandingPlace {
    /// Never claimed.
    Waiting,
    /// Claimed at least once: processing, or back for another run.
    InFlight,
    /// Failed: holds no place and blocks no put.
    Failed,
}

/// A task that stands for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStanding {
    /// The key.
    pub key: String,
    /// The task.
    pub id: TaskId,
    /// Where it stands.
    pub place: StandingPlace,
    /// Its state.
    pub state: State,
}

/// Where tasks live, and the rules of claiming.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    // ---- tasks -----------------------------------------------------------

    /// Puts tasks on one queue. One answer a task, in order; the answers are
    /// true together, and durable as the queue says, when this returns.
    async fn put(&self, request: PutRequest) -> Result<PutReport>;

    /// Takes due tasks in the queue's order under a new lease. Returns expired
    /// leases of the queue first. Afterwards the tasks are processing, their
    /// attempts and claims are one higher, and the token is the only one that
    /// settles them. An unknown queue is an error. A paused one gives nothing,
    /// and returns no expired leases either (`sweep` and `reclaim` do). Who
    /// claims or sweeps is told which tasks failed for good by their last
    /// lease's end.
    async fn claim(&self, request: ClaimRequest) -> Result<Claim>;

    /// Records how attempts ended; one answer each, in order. Each is
    /// recorded with its follow-ups, or refused without any effect, by
    /// itself: one stale token does not undo its neighbours.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>>;

    /// Prolongs leases; one answer each, in order. A lease whose time is over
    /// but whose tasks nobody took is prolonged like any other. A length that
    /// no lease can have is an error, and then none is prolonged. How far tasks are is
    /// shown from then on while their lease is open, by `get` and `list`, and is gone
    /// with the attempt; under a stale token it changes nothing. A memory store that
    /// is full may pass over it.
    async fn extend(&self, extensions: Vec<Extension>) -> Result<Vec<ExtendAnswer>>;

    /// Keeps what handlers want the next attempts of their tasks to have, in place of
    /// what was kept before; one answer each, in order, each by itself. Durable, as
    /// the queue says, when this returns. Refused under a stale token. What is kept
    /// stays through every attempt that comes back or fails, through an operator's
    /// retry, a copy and a restart, and goes with the task, or when a put replaces
    /// the task's data.
    async fn checkpoint(&self, checkpoints: Vec<Checkpoint>) -> Result<Vec<CheckpointAnswer>> {
        let _ = checkpoints;
        Err(StoreError::not_supported("keep checkpoints".to_owned()))
    }

    /// What came of tasks; one answer each, in order. The end of a task that somebody
    /// wants (a put said so, of it or of a duplicate of it) is known for ten minutes,
    /// what its handler returned as long as its queue keeps it. What was forgotten,
    /// or never stood here, is not known.
    async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        let _ = ids;
        Err(StoreError::not_supported("tell what came of a task".to_owned()))
    }

    /// Returns when a wanted task may have ended after `since`, or after `timeout` in
    /// real time. A hint: ask for the ending to know.
    async fn wait_ended(&self, since: WakeMark, timeout: Duration) -> Result<()> {
        let _ = (since, timeout);
        Err(StoreError::not_supported("wait for the end of a task".to_owned()))
    }

    /// The tasks that are open under a token, by id; none when there is no such
    /// claim or nothing of it is open any more. For who claimed with a token of its
    /// own and did not hear the answer.
    async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        let _ = token;
        Err(StoreError::not_supported("tell what is open under a token".to_owned()))
    }

    /// Takes back tasks of all queues whose lease ran out, a bounded number a
    /// call. Returns how many went back or failed.
    async fn reclaim(&self) -> Result<u64>;

    /// Does everything that is due with time: reclaims, counts tasks that fell
    /// due as ready, un-blocks what was missed, and drops what is past its
    /// keeping time. Called about once a second by anyone.
    async fn sweep(&self) -> Result<SweepReport>;

    /// Answers when the store does, as whoever sweeps asks while there is nothing
    /// to sweep. Nothing is read or written.
    async fn reach(&self) -> Result<()> {
        Ok(())
    }

    /// The point to wait from: take it before a claim, and hand it to `wait`
    /// when the claim came back empty.
    fn mark(&self) -> WakeMark;

    /// Returns when work may have become claimable in one of the queues after
    /// `since`, or after `timeout` in real time. A hint: claim to know. A task
    /// that falls due wakes nobody; a claim's `next_due` says when to look.
    async fn wait(&self, queues: &[QueueName], since: WakeMark, timeout: Duration) -> Result<()>;

    /// The tasks that stand for these keys, failed ones included, by key and
    /// id.
    async fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>>;

    /// One task, whatever its state.
    async fn get(&self, id: TaskId) -> Result<Option<Task>>;

    /// A page of tasks by id. Kept done tasks are listed only when that state
    /// is asked for.
    async fn list(&self, request: ListRequest) -> Result<Page>;

    /// One bounded step of an operator's action on tasks.
    async fn operate(&self, operation: Operation) -> Result<OperationReport>;

    /// Takes in tasks that stood in another store; one answer each, in order,
    /// true together. Afterwards each stands as it stood there, under a new
    /// number: state, key's place, times, attempts, claims and history. It
    /// counts as put, asks for no room in its queue, and merges with nothing.
    /// What was imported under the same mark lately is not imported again.
    /// An unknown queue is an error.
    async fn import(&self, import: Import) -> Result<Vec<ImportAnswer>> {
        let _ = import;
        Err(StoreError::not_supported("import tasks of another store".to_owned()))
    }

    // ---- queues ----------------------------------------------------------

    /// Says that a queue exists. Afterwards it does, with the settings of all
    /// origins and the operator's override on top. Refuses settings that
    /// contradict each other, a number that is taken, and a changed number.
    async fn declare_queue(&self, declaration: Declaration) -> Result<Declared>;

    /// An operator's change, on top of earlier changes; wins over every
    /// declaration until reset.
    async fn override_queue(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared>;

    /// Takes the operator's change back.
    async fn reset_queue(&self, queue: &QueueName, by: &str) -> Result<Declared>;

    /// Stops or resumes claims. Afterwards no new claim gives a task of a
    /// paused queue.
    async fn pause_queue(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()>;

    /// Keeps a queue's contract text, unless it would break standing tasks.
    async fn register_contract(&self, change: ContractChange) -> Result<ContractAnswer>;

    /// All queues, by number.
    async fn queues(&self) -> Result<Vec<Queue>>;

    /// All queues' numbers, by queue number; from kept counts.
    async fn stats(&self) -> Result<Vec<QueueStats>>;

    /// A queue's last minutes, oldest first, minutes without events left out.
    async fn minutes(&self, queue: &QueueName, back: Duration) -> Result<Vec<Minute>>;

    // ---- schedules -------------------------------------------------------

    /// Says that a schedule exists. What was decided before stays decided; a
    /// new one is decided up to now.
    async fn declare_schedule(&self, declaration: ScheduleDeclaration) -> Result<Schedule>;

    /// All schedules, by name.
    async fn schedules(&self) -> Result<Vec<Schedule>>;

    /// Deletes a schedule; returns whether there was one. Its tasks stay.
    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool>;

    /// Stops or resumes a schedule. Resumed, it is decided up to now.
    async fn pause_schedule(&self, name: &ScheduleName, paused: bool, by: &str) -> Result<bool>;

    /// Decides one instant of a schedule and puts its tasks, in one step: of
    /// all that fire the same instant, one succeeds. When a task is refused
    /// because the queue is full, the instant is decided: it was missed. An
    /// instant ahead of the store's clock is not decided. By hand and without
    /// tasks, a schedule with a finder remembers that a run was asked for.
    async fn fire(&self, fire: Fire) -> Result<FireAnswer>;

    // ---- documents -------------------------------------------------------

    /// One small record, as it stands.
    async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>>;

    /// Small records of one kind, by name; at most a page of them.
    async fn documents(&self, list: DocumentList) -> Result<Vec<Document>>;

    /// Makes, changes or removes a small record, if it stands as the change
    /// expects: of all that change the same version, one succeeds. When this
    /// returns it is durable, unless the change says that it need not be. What a
    /// wrong clock wrote in the future is, once a sweep or a change noticed it,
    /// as if it were written then.
    async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer>;

    // ---- the store itself ------------------------------------------------

    /// Looks the store over and says what is not as it should be; nothing is
    /// the good answer. It may take a while, and changes nothing.
    async fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        Ok(Vec::new())
    }

    /// What this store can do beyond the common rules.
    fn capabilities(&self) -> Capabilities;

    /// Its limits.
    fn limits(&self) -> &Limits;

    /// Most tasks that a flush of a bulk put should have now, because others
    /// wait for the store's one writer, or would if they came; nothing when that
    /// would not be long. A hint.
    fn flush_limit(&self) -> Option<usize> {
        None
    }

    /// Ends the store's own threads after what was asked before is done.
    /// Calls that come later answer [`StoreError::Closed`].
    async fn close(&self) -> Result<()>;
}
