//! A small pool: connections are made when they are needed, given to one
//! caller at a time, and dropped when anything went wrong on them. Every call
//! has a deadline over all of it: waiting for a connection, making one, and the
//! answer. Past it the connection is thrown away, and with it all that were
//! made before: what silenced one has mostly silenced the others.
//!
//! A new connection is slow at first: the server makes a process for it and
//! plans every statement anew, some fifty times the cost of a claim. So who
//! finds none idle waits a moment for one that is in use, and the one that was
//! used last is given first.
//!
//! Heartbeats have connections of their own: tasks of handlers that hold all the
//! others, and wait for their turn on a busy thread, do not hold leases up.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::{Result, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::{Connection, Fault, Texts};
use crate::deadline::{Class, Deadline, Timeouts};
use crate::driver::Driver;
use crate::errors::{self, Intent, Means};
use crate::server::{Need, Server, Wanted};
use crate::sql::Sql;
use crate::{Options, StatementMode};

/// How often a transaction that lost a race is tried again.
const TRIES: u32 = 5;
/// Connections for heartbeats; one thread of a worker needs one.
const PULSE: usize = 2;
/// How long one in use is waited for before another one is made.
const SOON: Duration = Duration::from_millis(5);
/// Who does not answer for so long may not be there any more. A shorter limit
/// says only that it was missed.
const SUSPICIOUS: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) driver: Driver,
    server: Server,
    mode: StatementMode,
    pub(crate) texts: Arc<Texts>,
    pub(crate) timeouts: Timeouts,
    common: Lane,
    pulse: Lane,
    /// Grows when a server is forsaken: connections of an older one are not used
    /// again.
    generation: AtomicU64,
    forsaken: Notify,
    is_closed: AtomicBool,
    ended: Notify,
}

/// Connections that some callers share.
#[derive(Debug)]
struct Lane {
    connections: usize,
    /// What its connections are for first of all: the server is told once how
    /// long those may take.
    class: Class,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    returned: Notify,
}

/// A connection taken from the pool; it goes back by itself.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    pool: &'a Pool,
    lane: &'a Lane,
    deadline: Deadline,
    connection: Option<Connection>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// A pool as the options have it.
    pub(crate) fn new(server: Server, options: &Options) -> Result<Self> {
        Ok(Pool {
            driver: Driver::start()?,
            server,
            mode: options.statement_mode,
            texts: Arc::new(Texts::new(&options.schema)),
            timeouts: options.timeouts,
            common: Lane::new(options.connections, Class::Flow),
            pulse: Lane::new(PULSE, Class::Heartbeat),
            generation: AtomicU64::new(0),
            forsaken: Notify::new(),
            is_closed: AtomicBool::new(false),
            ended: Notify::new(),
        })
    }

    /// Connections in use, idle, and possible.
    pub(crate) fn in_use(&self) -> (usize, usize, usize) {
        let (lane, free) = (&self.common, self.common.permits.available_permits());
        (lane.connections.saturating_sub(free), lane.idle().len(), lane.connections)
    }

    /// When a call of this kind must have its answer.
    pub(crate) fn deadline(&self, class: Class) -> Deadline {
        Deadline::after(self.timeouts.of(class))
    }

    /// A connection for a transaction of several statements, which has its end
    /// by the deadline.
    pub(crate) async fn take(&self, class: Class) -> Result<Taken<'_>> {
        self.take_of(&self.common, Need::Write, self.deadline(class)).await
    }

    /// The same for reading.
    pub(crate) async fn take_to_read(&self, class: Class) -> Result<Taken<'_>> {
        self.take_of(&self.common, Need::Any, self.deadline(class)).await
    }

    async fn take_of<'a>(
        &'a self,
        lane: &'a Lane,
        need: Need,
        deadline: Deadline,
    ) -> Result<Taken<'a>> {
        let permit = lane.permits.clone().acquire_owned();
        let permit = match timeout_at(deadline.at, permit).await {
            Ok(permit) => permit.map_err(|_| StoreError::Closed)?,
            Err(_) => {
                let why = format!("no connection was free within {:?}", deadline.limit);
                return Err(StoreError::unavailable(why));
            }
        };
        let connection = self.connection(lane, need, &deadline).await?;
        let connection = Some(connection);
        Ok(Taken { pool: self, lane, deadline, connection, _permit: permit })
    }

    /// An idle connection, one that somebody gives back in a moment, or a new one.
    async fn connection(&self, lane: &Lane, need: Need, deadline: &Deadline) -> Result<Connection> {
        let soon = Instant::now() + SOON;
        loop {
            // Made before the look: one that comes back in between is not missed.
            let returned = lane.returned.notified();
            let idle = lane.idle().pop();
            match idle {
                Some(connection) if self.trusts(&connection) && connection.suits(need) => {
                    return Ok(connection);
                }
                // The server ended it while it was idle, another one fell silent
                // since, or it only stood in.
                Some(_) => {}
                None if lane.permits.available_permits() + 1 < lane.connections
                    && timeout_at(soon, returned).await.is_ok() => {}
                None => return self.open(lane, need, deadline).await,
            }
        }
    }

    async fn open(&self, lane: &Lane, need: Need, deadline: &Deadline) -> Result<Connection> {
        // Before it is made: what goes wrong meanwhile is not held against later
        // ones.
        let generation = self.generation.load(Ordering::Acquire);
        let limit = self.timeouts.of(lane.class);
        let limit = (self.mode == StatementMode::Prepared).then_some(limit);
        let wanted = Wanted { need, limit, heard: None };
        let mut opened =
            Connection::open(&self.driver, &self.server, self.mode, wanted, deadline).await?;
        opened.generation = generation;
        Ok(opened)
    }

    fn trusts(&self, connection: &Connection) -> bool {
        connection.is_sound() && connection.generation == self.generation.load(Ordering::Acquire)
    }

    /// A server fell silent, went away or takes no more writes: whatever was
    /// connected before is not used again, and whoever listens should look.
    fn forsake(&self, generation: u64) {
        let next = generation + 1;
        let order = Ordering::AcqRel;
        // Others that fail with it say nothing new.
        if self.generation.compare_exchange(generation, next, order, Ordering::Relaxed).is_ok() {
            for lane in [&self.common, &self.pulse] {
                lane.idle().retain(|idle| idle.generation > generation);
            }
            self.forsaken.notify_waiters();
        }
    }

    /// Returns when a server was forsaken.
    pub(crate) async fn forsaken(&self) {
        self.forsaken.notified().await;
    }

    /// One statement as a transaction of its own, tried again when it lost a
    /// race, and elsewhere when the server takes no writes any more.
    pub(crate) async fn query(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        intent: Intent,
        deadline: Deadline,
    ) -> Result<Vec<Row>> {
        self.ask(sql, values, None, intent, Need::Write, deadline).await
    }

    async fn ask(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        notice: Option<&str>,
        intent: Intent,
        need: Need,
        deadline: Deadline,
    ) -> Result<Vec<Row>> {
        let answer = self.attempt(sql, values, notice, need, deadline).await?;
        answer.map_err(|fault| told(fault, intent, &deadline))
    }

    /// The rows, or the fault that is left when trying again has not helped.
    pub(crate) async fn attempt(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        notice: Option<&str>,
        need: Need,
        deadline: Deadline,
    ) -> Result<Result<Vec<Row>, Fault>> {
        let (mut races, mut elsewhere) = (0, 0);
        loop {
            let mut taken = self.take_of(self.lane(sql), need, deadline).await?;
            let fault = match taken.query(&self.texts, sql, values, notice, &deadline).await {
                Ok(rows) => return Ok(Ok(rows)),
                Err(fault) => fault,
            };
            let next = taken.judge(&fault);
            drop(taken);
            match next {
                Next::Again if races < TRIES => races += 1,
                Next::Elsewhere if elsewhere < 1 => elsewhere += 1,
                _ => return Ok(Err(fault)),
            }
        }
    }

    /// Reads rows.
    pub(crate) async fn read(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let deadline = self.deadline(Class::of(sql));
        let mut tries = 0;
        loop {
            match self.ask(sql, values, None, Intent::Read, Need::Any, deadline).await {
                // A connection that ended since its last use: a read can be
                // sent again.
                Err(StoreError::Unavailable(_)) if tries < 2 && !deadline.has_passed() => {
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Changes something.
    pub(crate) async fn write(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.query(sql, values, Intent::Write, self.deadline(Class::of(sql))).await
    }

    /// Changes something, with a notice right behind it if one is given: it is sent
    /// when the change is committed.
    pub(crate) async fn write_and_tell(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        notice: Option<&str>,
    ) -> Result<Vec<Row>> {
        let deadline = self.deadline(Class::of(sql));
        self.ask(sql, values, notice, Intent::Write, Need::Write, deadline).await
    }

    /// Asks for a sign of life, which is no transaction.
    pub(crate) async fn reach(&self) -> Result<()> {
        let deadline = self.deadline(Class::Heartbeat);
        let mut taken = self.take_of(&self.pulse, Need::Write, deadline).await?;
        match taken.check(&deadline).await {
            Ok(()) => Ok(()),
            Err(fault) => Err(taken.told(fault, Intent::Read)),
        }
    }

    /// Whether a notice can go right behind what is written: not over a pooler,
    /// where the two may be sent apart.
    pub(crate) fn takes_along(&self) -> bool {
        self.mode == StatementMode::Prepared
    }

    /// Gives no more connections and closes the idle ones.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        for lane in [&self.common, &self.pulse] {
            lane.permits.close();
            lane.idle().clear();
        }
        self.ended.notify_waiters();
    }

    /// Returns when the pool is closed.
    pub(crate) async fn closed(&self) {
        let ended = self.ended.notified();
        tokio::pin!(ended);
        // Registered before looking: a close in between is not missed.
        ended.as_mut().enable();
        if !self.is_closed() {
            ended.await;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Which connections a statement goes over.
    fn lane(&self, sql: Sql) -> &Lane {
        match sql {
            // What a heartbeat's thread does.
            Sql::Extend | Sql::Reclaim | Sql::DueChores | Sql::DoChore => &self.pulse,
            _ => &self.common,
        }
    }
}

impl Lane {
    fn new(connections: usize, class: Class) -> Self {
        let permits = Arc::new(Semaphore::new(connections));
        Lane { connections, class, idle: Mutex::default(), permits, returned: Notify::new() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // A list is valid whatever a panicking holder did.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Taken<'_> {
    type Target = Connection;

    #[expect(clippy::expect_used, reason = "it is taken out only when this is dropped")]
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("held until the drop")
    }
}

impl DerefMut for Taken<'_> {
    #[expect(clippy::expect_used, reason = "it is taken out only when this is dropped")]
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("held until the drop")
    }
}

/// What can be done after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The same over any connection: it lost a race, and nothing of it stands.
    Again,
    /// The same over a new connection: this one cannot, and nothing was done.
    Elsewhere,
    /// Nothing.
    Tell,
}

/// The store's error for a fault.
pub(crate) fn told(fault: Fault, intent: Intent, deadline: &Deadline) -> StoreError {
    match fault {
        Fault::Said(error) => errors::fault(error, intent),
        Fault::Late { sent } => deadline.missed(intent, sent),
        Fault::Unsynced if intent == Intent::Write => errors::unsynced(),
        // Of somebody's write before, who did not wait for its answer.
        Fault::Unsynced => StoreError::unavailable("another's write was cancelled".to_owned()),
        Fault::Strange(why) => StoreError::fault(why),
    }
}

impl Taken<'_> {
    /// What follows from a fault, for this connection and for others.
    fn judge(&mut self, fault: &Fault) -> Next {
        let means = match fault {
            Fault::Said(error) => errors::means(error),
            Fault::Late { .. } if self.deadline.limit < SUSPICIOUS => return Next::Tell,
            Fault::Late { .. } => Means::ServerGone,
            Fault::Unsynced | Fault::Strange(_) => return Next::Tell,
        };
        match means {
            Means::LostRace => Next::Again,
            Means::StalePlan => {
                self.spend();
                Next::Elsewhere
            }
            Means::ReadOnly => {
                self.spend();
                self.pool.forsake(self.generation);
                Next::Elsewhere
            }
            Means::ServerGone => {
                self.spend();
                self.pool.forsake(self.generation);
                Next::Tell
            }
            Means::Unusable => {
                self.spend();
                Next::Tell
            }
            Means::Refused => Next::Tell,
        }
    }

    fn told(&mut self, fault: Fault, intent: Intent) -> StoreError {
        self.judge(&fault);
        told(fault, intent, &self.deadline)
    }

    /// Begins a transaction. Dropped before [`Taken::commit`], the connection
    /// is closed, which undoes everything. A server that takes no writes any
    /// more is left for another one.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        let deadline = self.deadline;
        for last in [false, true] {
            self.in_transaction = true;
            match Connection::begin(self, &deadline).await {
                Ok(true) => return Ok(()),
                Ok(false) => self.pool.forsake(self.generation),
                Err(fault) => {
                    let next = self.judge(&fault);
                    if next != Next::Elsewhere || last {
                        return Err(told(fault, Intent::Read, &deadline));
                    }
                }
            }
            if !last {
                let fresh = self.pool.connection(self.lane, Need::Write, &deadline).await?;
                self.connection = Some(fresh);
            }
        }
        Err(errors::read_only())
    }

    /// One statement of a transaction: until the commit nothing is written.
    pub(crate) async fn run(
        &mut self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let (pool, deadline) = (self.pool, self.deadline);
        let answer = self.query(&pool.texts, sql, values, None, &deadline).await;
        answer.map_err(|fault| self.told(fault, Intent::Read))
    }

    /// A script of a transaction.
    pub(crate) async fn run_script(&mut self, text: &str) -> Result<()> {
        self.end_with(text, Intent::Read).await
    }

    /// Commits; without an answer the outcome is unknown.
    pub(crate) async fn commit(mut self) -> Result<()> {
        self.end_with("COMMIT", Intent::Write).await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Undoes everything and keeps the connection.
    pub(crate) async fn roll_back(mut self) -> Result<()> {
        self.end_with("ROLLBACK", Intent::Read).await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn end_with(&mut self, text: &str, intent: Intent) -> Result<()> {
        let deadline = self.deadline;
        let answer = self.script(text, &deadline).await;
        answer.map_err(|fault| self.told(fault, intent))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.pool.trusts(&connection)
            && !self.pool.is_closed()
        {
            self.lane.idle().push(connection);
            self.lane.returned.notify_one();
        }
    }
}
