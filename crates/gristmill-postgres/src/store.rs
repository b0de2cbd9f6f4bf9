//! The store: what it is made of, how it is opened and closed, and its verbs, each
//! handed to where it is done.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once};

use gristmill_core::name::did_you_mean;
use gristmill_core::policy::reclaim_guard::ReclaimGuard;
use gristmill_core::{
    Capabilities, Clock, Limits, Queue, QueueName, Result, StoreError, SystemClock, Token,
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

/// Where a call of a verb is done.
macro_rules! postgres {
    (now $self:ident.mark()) => {{
        $self.inner.listen();
        $self.inner.ear.wake.mark()
    }};
    (now $self:ident.capabilities()) => { CAPABILITIES };
    (now $self:ident.limits()) => { &$self.inner.limits };
    (now $self:ident.flush_limit()) => { None };
    ($self:ident.put($request:ident)) => {{
        $self.is_open()?;
        $self.inner.put($request).await
    }};
    ($self:ident.wait($queues:ident, $since:ident, $timeout:ident)) => {{
        $self.is_open()?;
        $self.inner.listen();
        let timeout = $timeout.min($self.inner.limits.wait);
        $self.inner.ear.wake.wait($queues, $since, timeout).await;
        $self.is_open()
    }};
    ($self:ident.wait_ended($since:ident, $timeout:ident)) => {{
        $self.is_open()?;
        $self.inner.listen();
        let timeout = $timeout.min($self.inner.limits.wait);
        $self.inner.ear.wake.wait_ended($since, timeout).await;
        $self.is_open()
    }};
    ($self:ident.reach()) => { $self.inner.pool.reach().await };
    ($self:ident.override_queue($queue:ident, $settings:ident, $by:ident)) => {
        $self.inner.override_queue($queue, Some((&$settings, $by))).await
    };
    ($self:ident.reset_queue($queue:ident, $by:ident)) => {{
        let _ = $by;
        $self.inner.override_queue($queue, None).await
    }};
    ($self:ident.close()) => {{
        $self.inner.notifier.last_words(&$self.inner.pool).await;
        $self.inner.pool.close();
        $self.inner.ear.wake.wake_all();
        Ok(())
    }};
    ($self:ident.extend($one:ident)) => { $self.inner.extend(&$one).await };
    ($self:ident.checkpoint($one:ident)) => { $self.inner.checkpoint(&$one).await };
    ($self:ident.list($one:ident)) => { $self.inner.list(&$one).await };
    ($self:ident.operate($one:ident)) => { $self.inner.operate(&$one).await };
    ($self:ident.import($one:ident)) => { $self.inner.import(&$one).await };
    ($self:ident.fire($one:ident)) => { $self.inner.fire(&$one).await };
    ($self:ident.documents($one:ident)) => { $self.inner.documents(&$one).await };
    ($self:ident.$verb:ident($($given:ident),*)) => { $self.inner.$verb($($given),*).await };
}

gristmill_core::delegate_store!(PostgresStore, postgres);

/// What a server can do beyond the common rules.
const CAPABILITIES: Capabilities = Capabilities {
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
};

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
