//! The store: what it is made of, how it is opened and closed, and its verbs, each
//! handed to where it is done.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::name::did_you_mean;
use gristmill_core::policy::reclaim_guard::ReclaimGuard;
use gristmill_core::{
    Assignment, Capabilities, Checkpoint, CheckpointAnswer, Claim, ClaimRequest, Clock,
    ContractAnswer, ContractChange, Declaration, Declared, Diagnosis, Document, DocumentAnswer,
    DocumentChange, DocumentList, Ending, ExtendAnswer, Extension, Fire, FireAnswer, Import,
    ImportAnswer, KeyStanding, Leadership, Limits, ListRequest, Minute, Operation, OperationReport,
    Page, Published, PutReport, PutRequest, Queue, QueueName, QueueStats, Result, Schedule,
    ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer, Settlement, Store, StoreError,
    SweepReport, SystemClock, Task, TaskId, Token, WakeMark, WorkerId, WorkerReport, WorkerView,
};

use crate::answer::column;
use crate::clamp::Back;
use crate::codec;
use crate::hint::Hints;
use crate::listener::{self, Ear};
use crate::migration;
use crate::notifier::Notifier;
use crate::pool::Pool;
use crate::put::{Elaborate, Group, Turns};
use crate::server::Server;
use crate::sql::{Sql, at};
use crate::{Options, StatementMode, url};

/// Tasks in a schema of a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
}

/// What the store's own tasks share with it.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) pool: Arc<Pool>,
    pub(crate) limits: Limits,
    /// In tests; else the server's clock is the only one.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    /// Our own pace, also in tests: what claims cost is measured in real time.
    pub(crate) steady: SystemClock,
    pub(crate) guard: Mutex<ReclaimGuard>,
    pub(crate) back: Mutex<Back>,
    pub(crate) hints: Hints,
    pub(crate) group: Group,
    pub(crate) elaborate: Elaborate,
    /// For puts that wait for somebody else's open transaction.
    pub(crate) turns: Turns,
    pub(crate) ear: Arc<Ear>,
    /// Where to listen for wake-ups, and whether that has begun.
    listen: Option<Server>,
    listens: Once,
    pub(crate) notifier: Notifier,
    pub(crate) unfolded: Mutex<u32>,
    /// The store's own id, so that a transaction can be told from another's.
    pub(crate) id: String,
}

impl PostgresStore {
    /// Opens the store that the URL names, and makes its schema or brings it
    /// up to date. To be called within a tokio runtime, whose tasks it uses.
    ///
    /// # Errors
    /// When the URL cannot be read, the server cannot be reached, or the
    /// schema is another program's.
    pub async fn open(url: &str, options: Options) -> Result<Self> {
        let (server, options) = url::read(url, options)?;
        let pool = Arc::new(Pool::new(server.clone(), &options)?);
        let id = migration::migrate(&pool, options.migrate).await?;
        let listen = match (&options.listen_url, options.statement_mode) {
            (Some(url), _) => Some(url::read(url.reveal(), Options::default())?.0),
            (None, StatementMode::Prepared) => Some(server),
            (None, StatementMode::Unnamed) => None,
        };
        let ear = Arc::new(Ear::new(Token::random()?.to_string()));
        let notifier = Notifier::start(&pool, &ear);
        let inner = Inner {
            pool,
            limits: options.limits,
            clock: options.clock,
            steady: SystemClock::default(),
            guard: Mutex::default(),
            back: Mutex::default(),
            hints: Hints::default(),
            group: Group::default(),
            elaborate: Elaborate::default(),
            turns: Turns::default(),
            ear,
            listen,
            listens: Once::new(),
            notifier,
            unfolded: Mutex::new(0),
            id,
        };
        inner.look_first().await?;
        Ok(PostgresStore { inner: Arc::new(inner) })
    }

    fn is_open(&self) -> Result<()> {
        if self.inner.pool.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Whether wake-ups of other processes are heard at once. While they are
    /// not, workers find work by polling, some ten times a second. Who has no
    /// worker, and waits for nothing, does not listen.
    #[must_use]
    pub fn hears_wake_ups(&self) -> bool {
        self.inner.ear.hears.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn put(&self, request: PutRequest) -> Result<PutReport> {
        self.is_open()?;
        self.inner.put(request).await
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

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.inner.pool.close();
    }
}

impl Inner {
    /// Listens for wake-ups from now on: somebody is about to wait for work.
    pub(crate) fn listen(&self) {
        self.listens.call_once(|| listener::start(&self.ear, &self.pool, self.listen.clone()));
    }

    /// Work may have become claimable in these queues, also behind a hint.
    pub(crate) fn woken(&self, queues: &[QueueName]) {
        for queue in queues {
            self.hints.forget(queue);
            self.notifier.tell(queue);
        }
        self.ear.wake.wake(queues);
    }

    /// Work may have become claimable anywhere.
    pub(crate) fn everything_woken(&self) {
        self.hints.forget_all();
        self.notifier.tell_all();
        self.ear.wake.wake_all();
    }

    pub(crate) async fn queue_names(&self) -> Result<Vec<String>> {
        let rows = self.pool.read(Sql::QueueNumbers, &[]).await?;
        rows.iter().map(|row| column(row, at!(QueueNumbers.name))).collect()
    }

    pub(crate) async fn find_queue(&self, name: &QueueName) -> Result<Option<Queue>> {
        let rows = self.pool.read(Sql::QueueByName, &[&name.as_str()]).await?;
        rows.first().map(codec::queue).transpose()
    }

    /// The queue's number, or the error that names a similar one.
    pub(crate) async fn number(&self, name: &QueueName) -> Result<i32> {
        match self.find_queue(name).await? {
            Some(queue) => Ok(i32::try_from(queue.number).unwrap_or(i32::MAX)),
            None => Err(self.unknown_queue(name).await),
        }
    }

    /// The error of a queue that nobody declared.
    pub(crate) async fn unknown_queue(&self, name: &QueueName) -> StoreError {
        let names = self.queue_names().await.unwrap_or_default();
        let suggestion = did_you_mean(name.as_str(), names.iter().map(String::as_str));
        StoreError::UnknownQueue {
            name: name.to_string(),
            suggestion: suggestion.map(str::to_owned),
        }
    }

    /// An error of the database with what only we can say.
    pub(crate) async fn named(&self, error: StoreError, queue: &QueueName) -> StoreError {
        match error {
            StoreError::UnknownQueue { .. } => self.unknown_queue(queue).await,
            other => other,
        }
    }
}
