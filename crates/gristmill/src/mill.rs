//! The mill: a store, opened, and what an application does with it.

use std::sync::Arc;

use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::observed::{Observed, StoreEvent, Verbs};
use gristmill_core::{Clock, Store, StoreError, Timestamp};
use gristmill_files::FilesStore;
use gristmill_postgres::PostgresStore;
use gristmill_sqlite::SqliteStore;
use tokio::sync::broadcast;

use crate::metrics::Metrics;
use crate::outage::Outage;
use crate::{Bulk, Declare, Error, Inspect, Put, RawTask, StoreUrl, TaskType};

/// An open store. Cheap to clone; clones share it.
#[derive(Debug, Clone)]
pub struct Mill {
    store: Arc<Observed>,
    sqlite: Option<Arc<SqliteStore>>,
    files: Option<Arc<FilesStore>>,
    postgres: Option<Arc<PostgresStore>>,
    metrics: Metrics,
    outage: Arc<Outage>,
    /// The finders of schedulers that run on this mill or a clone of it.
    finders: Arc<crate::schedule::Finders>,
}

impl Mill {
    /// Opens the store that the URL names, creating it if it is not there:
    /// `memory:`, `sqlite://path`, `files://folder` or
    /// `postgres://host/database`.
    ///
    /// # Errors
    /// When the URL names no store, or the store cannot be opened: no
    /// permission, not a database, written by a newer version.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_or_create(&url.parse()?, true).await
    }

    /// As [`Mill::open`], by a URL that was read before: a program that keeps a
    /// [`StoreUrl`] instead of its text cannot print the password by mistake.
    ///
    /// # Errors
    /// When the store cannot be opened, as [`Mill::open`].
    pub async fn open_at(url: &StoreUrl) -> Result<Self, Error> {
        Self::open_or_create(url, true).await
    }

    /// As [`Mill::open`], but a store that is not there is an error rather
    /// than an empty store where a full one was expected.
    ///
    /// # Errors
    /// As [`Mill::open`], and when there is no such store.
    pub async fn open_existing(url: &str) -> Result<Self, Error> {
        Self::open_or_create(&url.parse()?, false).await
    }

    /// As [`Mill::open_existing`], by a URL that was read before.
    ///
    /// # Errors
    /// As [`Mill::open_existing`], but for the URL.
    pub async fn open_existing_at(url: &StoreUrl) -> Result<Self, Error> {
        Self::open_or_create(url, false).await
    }

    async fn open_or_create(url: &StoreUrl, create: bool) -> Result<Self, Error> {
        match url.clone() {
            StoreUrl::Memory => {
                Ok(Self::over(Arc::new(MemoryStore::new(MemoryOptions::default()))))
            }
            StoreUrl::Sqlite(path) => {
                let options = gristmill_sqlite::Options { create, ..Default::default() };
                // Opening reads, and at the first time writes, the disk: not
                // on a thread that drives other people's futures.
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open(path, options));
                let opened = opened
                    .await
                    .map_err(|e| StoreError::Unavailable(format!("opening was ended: {e}")))?;
                Ok(Self::over_sqlite(Arc::new(opened?)))
            }
            StoreUrl::Files(folder) => {
                let options = gristmill_files::Options { create, ..Default::default() };
                let opened = tokio::task::spawn_blocking(move || FilesStore::open(folder, options));
                let opened = opened
                    .await
                    .map_err(|e| StoreError::Unavailable(format!("opening was ended: {e}")))?;
                Ok(Self::over_files(Arc::new(opened?)))
            }
            StoreUrl::Postgres(url) => {
                let options = gristmill_postgres::Options { migrate: create, ..Default::default() };
                let opened = PostgresStore::open(url.reveal(), options).await?;
                Ok(Self::over_postgres(Arc::new(opened)))
            }
        }
    }

    /// A mill over any store.
    #[must_use]
    pub fn over(store: Arc<dyn Store>) -> Self {
        let store = Arc::new(Observed::new(store));
        let metrics = Metrics::default();
        let (outage, finders) = (Arc::default(), Arc::default());
        Mill { store, sqlite: None, files: None, postgres: None, metrics, outage, finders }
    }

    /// A mill over an opened SQLite store, whose extras stay reachable.
    #[must_use]
    pub fn over_sqlite(sqlite: Arc<SqliteStore>) -> Self {
        Mill { sqlite: Some(sqlite.clone()), ..Self::over(sqlite) }
    }

    /// A mill over an opened file spool, whose extras stay reachable.
    #[must_use]
    pub fn over_files(files: Arc<FilesStore>) -> Self {
        Mill { files: Some(files.clone()), ..Self::over(files) }
    }

    /// A mill over an opened PostgreSQL store, whose extras stay reachable.
    #[must_use]
    pub fn over_postgres(postgres: Arc<PostgresStore>) -> Self {
        Mill { postgres: Some(postgres.clone()), ..Self::over(postgres) }
    }

    /// The PostgreSQL store, where it is one: putting and completing inside
    /// your own transaction, and whether wake-ups are heard.
    #[must_use]
    pub fn postgres(&self) -> Option<&Arc<PostgresStore>> {
        self.postgres.as_ref()
    }

    /// Now, by the clock that decides what is due: on a server its own, elsewhere
    /// the one that this process has.
    pub(crate) async fn now(&self, ours: &dyn Clock) -> Result<Timestamp, StoreError> {
        match &self.postgres {
            Some(server) => server.time().await,
            None => Ok(ours.now()),
        }
    }

    /// The store with all its verbs.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The SQLite store, where it is one: backup, check, and putting inside
    /// your own transaction.
    #[must_use]
    pub fn sqlite(&self) -> Option<&Arc<SqliteStore>> {
        self.sqlite.as_ref()
    }

    /// The file spool, where it is one: check, and what was set aside.
    #[must_use]
    pub fn files(&self) -> Option<&Arc<FilesStore>> {
        self.files.as_ref()
    }

    /// The numbers of the workers that run on this mill in this process.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How the store answers those who work over this mill by themselves.
    pub(crate) fn outage(&self) -> &Arc<Outage> {
        &self.outage
    }

    /// How often each verb of the store was called, failed, and how long it
    /// took.
    #[must_use]
    pub fn verbs(&self) -> &Verbs {
        self.store.verbs()
    }

    /// What happens in the store from now on, by this mill.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<StoreEvent> {
        self.store.watch()
    }

    /// Declares the queue of a task type. Await it as it is, or say settings
    /// first.
    pub fn declare<T: TaskType>(&self) -> Declare {
        Declare::new(self.clone(), T::QUEUE)
    }

    /// Declares a queue by name.
    pub fn declare_queue(&self, name: &str) -> Declare {
        Declare::new(self.clone(), name)
    }

    /// Puts a task. Await it as it is, or say more first:
    /// `mill.put(task).key("42").delay(minute).await`.
    pub fn put<T: TaskType>(&self, task: T) -> Put {
        Put::new(self.clone(), RawTask::typed(&task))
    }

    /// Puts a payload on a queue by name.
    pub fn put_raw(&self, queue: &str, payload: gristmill_core::Payload) -> Put {
        Put::new(self.clone(), Ok(RawTask::raw(queue, payload)))
    }

    /// Puts any number of tasks in constant memory, a flush at a time.
    pub fn put_all<T, I>(&self, tasks: I) -> Bulk<'_, I::IntoIter>
    where
        T: TaskType,
        I: IntoIterator<Item = T>,
    {
        Bulk::new(self, T::QUEUE, tasks.into_iter())
    }

    /// Declares a schedule. Say its rule and what it puts, then await it or
    /// give it to a [`Scheduler`](crate::schedule::Scheduler).
    pub fn schedule(&self, name: &str) -> crate::schedule::NewSchedule {
        crate::schedule::NewSchedule::new(self.clone(), name)
    }

    /// Fires a schedule by hand, now, also while it is paused. Decides
    /// nothing: the next fire by its rule comes as if this had not been.
    ///
    /// A finder is run to its end, where a [`Scheduler`](crate::schedule::Scheduler)
    /// of this mill or of a clone of it has its code; the answer has no tasks
    /// then, for a finder's puts are its own. Where the code is not, the answer
    /// is [`FireAnswer::Asked`](gristmill_core::FireAnswer::Asked): a scheduler
    /// that has it runs it within two seconds, or as soon as one is started.
    ///
    /// # Errors
    /// When there is no such schedule, its finder runs already, or the store
    /// cannot answer.
    pub async fn fire_schedule(&self, name: &str) -> Result<gristmill_core::FireAnswer, Error> {
        crate::schedule::fire(self, name).await
    }

    pub(crate) fn finders(&self) -> &crate::schedule::Finders {
        &self.finders
    }

    /// Reads what stands.
    #[must_use]
    pub fn inspect(&self) -> Inspect<'_> {
        Inspect::new(self)
    }

    /// Whether a put from outside would find room now.
    ///
    /// # Errors
    /// When there is no such queue or the store cannot answer.
    pub async fn can_accept(&self, queue: &str) -> Result<bool, Error> {
        Ok(self.inspect().queue(queue).await?.can_accept())
    }

    /// Ends the store's own threads after what was asked before is done.
    ///
    /// # Errors
    /// When the store cannot end cleanly.
    pub async fn close(&self) -> Result<(), Error> {
        Ok(self.store.close().await?)
    }
}
