//! Declaring a queue, said step by step.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use gristmill_core::{
    Backoff, Binding, Claims, Declaration, Declared, Fair, OnDuplicate, Origin, Per, QueueName,
    Rate, SettingsPatch, Unique,
};

use crate::{Error, Mill};

/// A declaration that happens when it is awaited.
#[derive(Debug)]
#[must_use = "a queue is declared when this is awaited"]
pub struct Declare {
    mill: Mill,
    name: String,
    number: Option<u32>,
    settings: SettingsPatch,
    origin: Origin,
}

impl Declare {
    pub(crate) fn new(mill: Mill, name: &str) -> Self {
        Declare {
            mill,
            name: name.to_owned(),
            number: None,
            settings: SettingsPatch::default(),
            origin: Origin::Code,
        }
    }

    /// Says any setting: `.with(|s| s.postpone_max = Some(Some(day)))`. The outer
    /// `Some` says it, the inner one is its value; what is not said keeps its
    /// default.
    pub fn with(mut self, say: impl FnOnce(&mut SettingsPatch)) -> Self {
        say(&mut self.settings);
        self
    }

    /// Attempts before a task fails.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|settings| settings.max_attempts = Some(Some(attempts)))
    }

    /// Attempts without end.
    pub fn unlimited_attempts(self) -> Self {
        self.with(|settings| settings.max_attempts = Some(None))
    }

    /// When a put counts as a duplicate.
    pub fn unique(self, unique: Unique) -> Self {
        self.with(|settings| settings.unique = Some(unique))
    }

    /// What a put does that is one: skipped, or the standing task takes over
    /// its data, and with `Postpone` starts later.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.with(|settings| settings.on_duplicate = Some(on_duplicate))
    }

    /// For so long after the last put of a key another one is a duplicate, also when
    /// its task is done and gone: a throttle. Cancelling, discarding and failing end it.
    pub fn unique_for(self, window: Duration) -> Self {
        self.with(|settings| settings.unique_for = Some(Some(window)))
    }

    /// How long to wait between attempts.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|settings| settings.backoff = Some(backoff))
    }

    /// Keeps done and resolved tasks for this long, apart from the others.
    pub fn keep_done(self, kept: Duration) -> Self {
        self.with(|settings| settings.keep_done = Some(Some(kept)))
    }

    /// Keeps what handlers return for this long, also where done tasks are not kept.
    pub fn keep_result(self, kept: Duration) -> Self {
        self.with(|settings| settings.keep_result = Some(Some(kept)))
    }

    /// Drops failed tasks after this long; they stay for ever unless said.
    pub fn keep_failed(self, kept: Duration) -> Self {
        self.with(|settings| settings.keep_failed = Some(Some(kept)))
    }

    /// Most tasks in one claim.
    pub fn batch_size(self, tasks: u32) -> Self {
        self.with(|settings| settings.batch_size = Some(tasks))
    }

    /// How long a task may wait before workers tell of it
    /// ([`Worker::on_late`](crate::Worker::on_late)).
    pub fn max_wait(self, wait: Duration) -> Self {
        self.with(|settings| settings.max_wait = Some(Some(wait)))
    }

    /// How long a claim lasts unless extended.
    pub fn lease(self, lease: Duration) -> Self {
        self.with(|settings| settings.lease = Some(lease))
    }

    /// How long a handler may take.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = Some(timeout))
    }

    /// Most pending tasks.
    pub fn capacity(self, tasks: u64) -> Self {
        self.with(|settings| settings.capacity = Some(Some(tasks)))
    }

    /// The manager's target: what is ready should be done within this time.
    /// Where the rotation alone would miss it, the queue gets processors of its
    /// own.
    pub fn drain_within(self, target: Duration) -> Self {
        self.with(|settings| settings.drain_within = Some(Some(target)))
    }

    /// How many processors it has of its own: at least, at most, and its share
    /// when they are short.
    pub fn processors(self, min: u32, max: Option<u32>, weight: u32) -> Self {
        self.with(|settings| {
            settings.processors_min = Some(min);
            settings.processors_max = Some(max);
            settings.processors_weight = Some(weight);
        })
    }

    /// Tells handlers how many others of their group run
    /// ([`Context::concurrent`](crate::worker::Context::concurrent)).
    pub fn count(self) -> Self {
        self.with(|settings| settings.count = Some(true))
    }

    /// Most of a group that may run at once, each with a number below it
    /// ([`Context::slot`](crate::worker::Context::slot)).
    pub fn slots(self, slots: u32) -> Self {
        self.with(|settings| settings.slots = Some(Some(slots)))
    }

    /// Most tasks that may be under lease at once, over all workers.
    pub fn concurrency(self, tasks: u32) -> Self {
        self.with(|settings| settings.concurrency = Some(Some(tasks)))
    }

    /// What [`concurrency`](Self::concurrency) is of: the queue, or each group.
    pub fn concurrency_per(self, per: Per) -> Self {
        self.with(|settings| settings.concurrency_per = Some(per))
    }

    /// Most tasks claimed in a time, over all workers.
    pub fn rate(self, tasks: u32, per: Duration) -> Self {
        self.with(|settings| settings.rate = Some(Some(Rate::new(tasks, per))))
    }

    /// Most at once after a pause; what the rate brings in a second unless said.
    pub fn burst(self, tasks: u32) -> Self {
        self.with(|settings| settings.burst = Some(Some(tasks)))
    }

    /// What the [`rate`](Self::rate) is of: the queue, or each group.
    pub fn rate_per(self, per: Per) -> Self {
        self.with(|settings| settings.rate_per = Some(per))
    }

    /// Claims take turns between the groups that have due tasks, within a priority.
    pub fn fair(self) -> Self {
        self.with(|settings| settings.fair = Some(Fair::Group))
    }

    /// Makes claims survive a power cut, so that `claims` can be passed on as a
    /// fencing number: it is never given twice. A claim then costs a sync.
    pub fn durable_claims(self) -> Self {
        self.with(|settings| settings.claims = Some(Claims::Durable))
    }

    /// The application's table whose rows the keys refer to: deleting a row
    /// deletes its tasks.
    pub fn bind(self, table: &str, column: &str) -> Self {
        let bind = Binding { table: table.to_owned(), column: column.to_owned() };
        self.with(|settings| settings.bind = Some(Some(bind)))
    }

    /// The queue's number by contract, 1 to 9999.
    pub fn number(mut self, number: u32) -> Self {
        self.number = Some(number);
        self
    }

    /// Who says so; code unless said.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }
}

impl IntoFuture for Declare {
    type Output = Result<Declared, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let declaration = Declaration {
                name: QueueName::new(&self.name)?,
                number: self.number,
                settings: self.settings,
                origin: self.origin,
            };
            Ok(self.mill.store().declare_queue(declaration).await?)
        })
    }
}
