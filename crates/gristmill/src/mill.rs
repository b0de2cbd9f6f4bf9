//! The mill: a store, opened, and what an application does with it.

use std::sync::Arc;

use gristmill_core::observed::{Observed, StoreEvent, Verbs};
use gristmill_core::{NewTask, Store};
use tokio::sync::broadcast;

use crate::metrics::Metrics;
use crate::open::Extras;
use crate::outage::Outage;
use crate::{Bulk, Declare, Error, Inspect, IntoPut, Put, StoreUrl, TaskType};

/// Sees a task before it is put.
type OnPut = Arc<dyn Fn(&str, &mut NewTask) + Send + Sync>;

/// An open store. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Mill {
    store: Arc<Observed>,
    pub(crate) extras: Extras,
    metrics: Metrics,
    outage: Arc<Outage>,
    /// The finders of schedulers that run on this mill or a clone of it.
    finders: Arc<crate::schedule::Finders>,
    on_put: Arc<[OnPut]>,
}

impl std::fmt::Debug for Mill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mill").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Mill {
    /// Opens the store that the URL names, creating it if it is not there:
    /// `memory:`, `sqlite://path`, `files://folder`, `postgres://host/database`, or
    /// the `http://host:4747` of a service (with the feature `remote`).
    ///
    /// # Errors
    /// When the URL names no store, or the store cannot be opened: no
    /// permission, not a database, written by a newer version.
    pub async fn open(url: &str) -> Result<Self, Error> {
        crate::open::open(&url.parse()?, true).await
    }

    /// As [`Mill::open`], by a URL that was read before: a program that keeps a
    /// [`StoreUrl`] instead of its text cannot print the password by mistake.
    ///
    /// # Errors
    /// When the store cannot be opened, as [`Mill::open`].
    pub async fn open_at(url: &StoreUrl) -> Result<Self, Error> {
        crate::open::open(url, true).await
    }

    /// As [`Mill::open`], but a store that is not there is an error rather
    /// than an empty store where a full one was expected.
    ///
    /// # Errors
    /// As [`Mill::open`], and when there is no such store.
    pub async fn open_existing(url: &str) -> Result<Self, Error> {
        crate::open::open(&url.parse()?, false).await
    }

    /// As [`Mill::open_existing`], by a URL that was read before.
    ///
    /// # Errors
    /// As [`Mill::open_existing`], but for the URL.
    pub async fn open_existing_at(url: &StoreUrl) -> Result<Self, Error> {
        crate::open::open(url, false).await
    }

    /// A mill over any store.
    #[must_use]
    pub fn over(store: Arc<dyn Store>) -> Self {
        let store = Arc::new(Observed::new(store));
        let metrics = Metrics::default();
        let (outage, finders, on_put) = (Arc::default(), Arc::default(), Arc::new([]));
        Mill { store, extras: Extras::default(), metrics, outage, finders, on_put }
    }

    /// The store with all its verbs: the port. What is on it is ours to change
    /// with any version; what is on [`Mill`] is not.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
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

    /// For how long the oldest transaction was open that keeps dead rows of the store from
    /// being removed, when somebody last swept over this mill (a worker does, about once a
    /// second); zero for none, and on stores that cannot know.
    #[must_use]
    pub fn oldest_transaction(&self) -> std::time::Duration {
        self.store.oldest_transaction()
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
    pub fn put(&self, task: impl IntoPut) -> Put {
        task.into_put().goes_to(self.clone())
    }

    /// Puts a payload on a queue by name.
    pub fn put_raw(&self, queue: &str, payload: gristmill_core::Payload) -> Put {
        Put::raw(queue, payload).goes_to(self.clone())
    }

    /// Puts any number of tasks in constant memory, a flush at a time: values
    /// of a [`TaskType`], or puts with more said about them ([`Put::of`]), of one
    /// queue or of several.
    pub fn put_all<I>(&self, tasks: I) -> Bulk<'_, I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoPut,
    {
        Bulk::new(self, tasks.into_iter())
    }

    /// This mill with a hook that sees every task before it is put by it or a
    /// clone of it, on whichever way it goes (alone, in bulk, in a transaction,
    /// by a schedule or finder; follow-ups by the mill the worker was made of),
    /// and may change it: a header that every task has, a source, a priority.
    /// Hooks run in the order in which they were said.
    ///
    /// ```
    /// # use gristmill::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Remind;
    /// # impl TaskType for Remind { const QUEUE: &'static str = "reminders"; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gristmill::Error> {
    /// let mill = Mill::open("memory:").await?.on_put(|_queue, task| {
    ///     task.headers.entry("tenant".into()).or_insert_with(|| "acme".into());
    /// });
    /// # mill.declare::<Remind>().await?;
    /// # mill.put(Remind).await?;
    /// # let all = mill.inspect().list(Default::default()).await?;
    /// # assert_eq!(all.tasks[0].headers["tenant"], "acme");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_put(mut self, hook: impl Fn(&str, &mut NewTask) + Send + Sync + 'static) -> Self {
        let mut hooks = self.on_put.to_vec();
        hooks.push(Arc::new(hook));
        self.on_put = hooks.into();
        self
    }

    pub(crate) fn before_put(&self, queue: &str, task: &mut NewTask) {
        for hook in self.on_put.iter() {
            hook(queue, task);
        }
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
