//! The store: what it is made of, and how it is opened and closed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use gristmill_core::name::did_you_mean;
use gristmill_core::policy::reclaim_guard::ReclaimGuard;
use gristmill_core::{
    Clock, Limits, PutAnswer, PutReport, PutRequest, Queue, QueueName, Result, Start, StoreError,
    SystemClock, Timestamp, Token,
};
use tokio_postgres::types::ToSql;

use crate::answer::column;
use crate::clamp::Back;
use crate::codec;
use crate::errors::corrupt;
use crate::group::Group;
use crate::held::{Patience, Turns};
use crate::hint::Hints;
use crate::listener::{self, Ear};
use crate::migration;
use crate::notifier::Notifier;
use crate::plain::Elaborate;
use crate::pool::{Pool, Taken};
use crate::put::{self, Columns, Sifted};
use crate::server::Server;
use crate::sql::{Sql, at};
use crate::wire::At;
use crate::{Options, StatementMode, url};

/// Changes after which appended counts are folded by this process.
const FOLD_AFTER: u32 = 2_000;

/// After an answer that took longer the server's clock is not compared with ours.
const LONG_ANSWER: Duration = Duration::from_secs(1);

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
    clock: Option<Arc<dyn Clock>>,
    /// Our own pace, also in tests: what claims cost is measured in real time.
    pub(crate) steady: SystemClock,
    guard: Mutex<ReclaimGuard>,
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
    unfolded: Mutex<u32>,
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

    /// Whether wake-ups of other processes are heard at once. While they are
    /// not, workers find work by polling, some ten times a second. Who has no
    /// worker, and waits for nothing, does not listen.
    #[must_use]
    pub fn hears_wake_ups(&self) -> bool {
        self.inner.ear.hears.load(Ordering::Relaxed)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.inner.pool.close();
    }
}

/// The parameters of a put around its columns.
#[derive(Debug)]
pub(crate) struct PutValues<'a> {
    queue: &'a str,
    atomic: bool,
    own: bool,
    patience: Option<i32>,
    refused: i32,
    now: Option<At>,
}

impl PutValues<'_> {
    /// In a transaction of the store's own, which is over with the put.
    pub(crate) fn own(self, patience: Patience) -> Self {
        Self { own: true, ..self.patient(patience) }
    }

    /// Waits no longer than this for somebody else's open transaction.
    pub(crate) fn patient(self, patience: Patience) -> Self {
        Self { patience: Some(patience.millis()), ..self }
    }

    pub(crate) fn as_refs<'v>(&'v self, columns: &'v Columns<'_>) -> Vec<&'v (dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.queue];
        values.extend(columns.values());
        let rest: [&(dyn ToSql + Sync); 5] =
            [&self.atomic, &self.own, &self.patience, &self.refused, &self.now];
        values.extend(rest);
        values
    }
}

impl PostgresStore {
    /// What time it is by the clock that decides: the server's.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn time(&self) -> Result<Timestamp> {
        let rows = self.inner.pool.read(Sql::Now, &[&self.inner.now()]).await?;
        let row = rows.first().ok_or_else(|| corrupt("the time", "it has no answer"))?;
        Ok(column::<At>(row, at!(Now.now))?.0)
    }
}

impl Inner {
    /// Now by the tests' clock; the server's own when there is none.
    pub(crate) fn now(&self) -> Option<At> {
        self.clock.as_ref().map(|clock| At(clock.now()))
    }

    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.as_ref().map_or_else(|| self.steady.monotonic(), |clock| clock.monotonic())
    }

    /// Now within a transaction; a jump is noticed on the way.
    pub(crate) async fn time(&self, connection: &mut Taken<'_>) -> Result<Timestamp> {
        if let Some(now) = self.now() {
            self.held();
            return Ok(now.0);
        }
        let begun = self.steady.monotonic();
        let rows = connection.run(Sql::Now, &[&None::<At>]).await?;
        let row = rows.first().ok_or_else(|| corrupt("the time", "it has no answer"))?;
        let now = column::<At>(row, at!(Now.now))?.0;
        self.observe(now, begun);
        Ok(now)
    }

    /// A first look at the clock: a jump is a difference between two.
    async fn look_first(&self) -> Result<()> {
        self.held();
        if self.clock.is_none() {
            let begun = self.steady.monotonic();
            let rows = self.pool.read(Sql::Now, &[&None::<At>]).await?;
            if let Some(row) = rows.first() {
                self.observe(column::<At>(row, at!(Now.now))?.0, begun);
            }
        }
        Ok(())
    }

    /// Takes note of the time, and says how long ago it was last distrusted.
    pub(crate) fn held(&self) -> Option<i64> {
        let monotonic = self.monotonic();
        if let Some(now) = self.now() {
            self.look(now.0, monotonic);
        }
        self.guard().held_for(monotonic).map(codec::span)
    }

    /// How long holders that say so often that they are alive are waited for.
    pub(crate) fn held_back(&self, heartbeat: Duration) -> Option<Duration> {
        self.guard().held_back(self.monotonic(), heartbeat)
    }

    /// Whether the clock is believed where something would be thrown away by it.
    pub(crate) fn may_forget(&self) -> bool {
        self.guard().may_forget(self.monotonic())
    }

    /// Compares the server's clock with our own pace: a jump, or an answer
    /// that took long, means that heartbeats may be late.
    pub(crate) fn observe(&self, now: Timestamp, begun: Duration) {
        if self.clock.is_none() {
            let ended = self.steady.monotonic();
            self.guard().wait(ended, ended.saturating_sub(begun));
            self.compare(now, begun);
        }
    }

    /// The same without a word on how long it took: a statement with work of its
    /// own says nothing of heartbeats.
    pub(crate) fn compare(&self, now: Timestamp, begun: Duration) {
        let took = self.steady.monotonic().saturating_sub(begun);
        // The server read its clock somewhere in between. After a long answer
        // nobody knows where, and that would look like a jump.
        if self.clock.is_none() && took <= LONG_ANSWER {
            self.look(now, begun + took / 2);
        }
    }

    fn look(&self, now: Timestamp, monotonic: Duration) {
        let went_back = {
            let mut guard = self.guard();
            guard.observe(now, monotonic, Duration::ZERO);
            guard.take_went_back()
        };
        if went_back {
            self.note_went_back();
        }
    }

    fn guard(&self) -> MutexGuard<'_, ReclaimGuard> {
        // Plain numbers are valid whatever a panicking holder did.
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

    pub(crate) fn put_values<'a>(
        &self,
        queue: &'a QueueName,
        atomic: bool,
        refused: i32,
    ) -> PutValues<'a> {
        let queue = queue.as_str();
        PutValues { queue, atomic, own: false, patience: None, refused, now: self.now() }
    }

    /// Puts in a statement of its own, which may be [`StoreError::Held`].
    pub(crate) async fn put_now(
        self: &Arc<Self>,
        request: &PutRequest,
        patience: Patience,
    ) -> Result<PutReport> {
        let PutRequest { queue, tasks, atomic } = request;
        let sifted = Sifted::new(tasks, &self.limits);
        let columns = Columns::of(&sifted.fit)?;
        let refused = sifted.refused();
        // It may tell of a put that is refused in the end: a worker that looks in
        // vain costs less than one that sleeps.
        let takes_along = self.pool.takes_along() && !sifted.fit.is_empty();
        let notice = takes_along.then(|| self.notifier.take_along(queue)).flatten();
        let notice = notice.as_deref();
        // One task is all of it or nothing anyway.
        let plain = if !*atomic || (tasks.len() == 1 && refused == 0) {
            self.put_plainly(queue, &columns, refused, patience, notice).await?
        } else {
            None
        };
        let answers = match plain {
            Some(answers) => answers,
            None => {
                let values = self.put_values(queue, *atomic, refused).own(patience);
                let values = values.as_refs(&columns);
                let rows = self.pool.write_and_tell(Sql::Put, &values, notice).await?;
                let row = rows.first().ok_or_else(|| corrupt("a put", "it has no answer"))?;
                let Some(answers) = put::answers(row, &sifted.fit)? else {
                    let refusal = put::unknown(queue, &self.queue_names().await?);
                    let answers = vec![PutAnswer::Refused(refusal); tasks.len()];
                    return Ok(PutReport { answers });
                };
                answers
            }
        };
        let replaced = answers.iter().any(|answer| matches!(answer, PutAnswer::Replaced { .. }));
        let report = sifted.whole(answers)?;
        let back = tasks.iter().any(|task| matches!(task.start, Start::At(_)));
        if replaced || back {
            self.hints.forget(queue);
        }
        if report.enqueued() > 0 || replaced {
            self.ear.wake.wake(std::slice::from_ref(queue));
            if notice.is_none() {
                self.notifier.tell(queue);
            }
        }
        self.count_change();
        Ok(report)
    }

    /// Now and then folds what was appended, for a program that only puts.
    fn count_change(self: &Arc<Self>) {
        let mut unfolded = self.unfolded.lock().unwrap_or_else(PoisonError::into_inner);
        *unfolded += 1;
        if *unfolded >= FOLD_AFTER {
            *unfolded = 0;
            let inner = self.clone();
            self.pool.driver.spawn(async move {
                if let Err(error) = inner.fold().await {
                    tracing::debug!(error = %error.whole(), "counts were not folded");
                }
            });
        }
    }
}
