//! A small pool: connections are made when they are needed, given to one
//! caller at a time, and dropped when anything went wrong on them.
//!
//! A new connection is slow at first: the server makes a process for it and
//! plans every statement anew, some fifty times the cost of a claim. So who
//! finds none idle waits a moment for one that is in use, and the one that was
//! used last is given first.
//!
//! Heartbeats have connections of their own: tasks of handlers that hold all the
//! others, and wait for their turn on a busy thread, do not hold leases up.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::{Result, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::StatementMode;
use crate::connection::{BEGIN, Connection, Texts};
use crate::driver::Driver;
use crate::errors::{Intent, fault, is_retryable};
use crate::server::Server;
use crate::sql::Sql;

/// How often a transaction that lost a race is tried again.
const TRIES: u32 = 5;
/// Connections for heartbeats; one thread of a worker needs one.
const PULSE: usize = 2;
/// How long one in use is waited for before another one is made.
const SOON: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) driver: Driver,
    server: Server,
    mode: StatementMode,
    pub(crate) texts: Arc<Texts>,
    common: Lane,
    pulse: Lane,
    is_closed: AtomicBool,
    ended: Notify,
}

/// Connections that some callers share.
#[derive(Debug)]
struct Lane {
    connections: usize,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    returned: Notify,
}

/// A connection taken from the pool; it goes back by itself.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    pool: &'a Pool,
    lane: &'a Lane,
    connection: Option<Connection>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(
        server: Server,
        mode: StatementMode,
        texts: Arc<Texts>,
        connections: usize,
    ) -> Result<Self> {
        let driver = Driver::start()?;
        let (common, pulse) = (Lane::new(connections), Lane::new(PULSE));
        let (is_closed, ended) = (AtomicBool::new(false), Notify::new());
        Ok(Pool { driver, server, mode, texts, common, pulse, is_closed, ended })
    }

    /// A connection, waited for while all are in use.
    pub(crate) async fn take(&self) -> Result<Taken<'_>> {
        self.take_of(&self.common).await
    }

    async fn take_of<'a>(&'a self, lane: &'a Lane) -> Result<Taken<'a>> {
        let permit = lane.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let soon = Instant::now() + SOON;
        let connection = loop {
            // Made before the look: one that comes back in between is not missed.
            let returned = lane.returned.notified();
            let idle = lane.idle().pop();
            match idle {
                Some(connection) if connection.is_sound() => break connection,
                // The server ended it while it was idle.
                Some(_) => {}
                None if lane.permits.available_permits() + 1 < lane.connections
                    && timeout_at(soon, returned).await.is_ok() => {}
                None => break Connection::open(&self.driver, &self.server, self.mode).await?,
            }
        };
        Ok(Taken { pool: self, lane, connection: Some(connection), _permit: permit })
    }

    /// One statement as a transaction of its own, tried again when it lost a
    /// race.
    pub(crate) async fn query(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        intent: Intent,
    ) -> Result<Vec<Row>> {
        let mut tries = 0;
        loop {
            let mut connection = self.take_of(self.lane(sql)).await?;
            match connection.query(&self.texts, sql, values).await {
                Ok(rows) => return Ok(rows),
                Err(error) if tries < TRIES && is_retryable(&error) => tries += 1,
                Err(error) => return Err(fault(&error, intent)),
            }
        }
    }

    /// Reads rows.
    pub(crate) async fn read(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut tries = 0;
        loop {
            match self.query(sql, values, Intent::Read).await {
                // A connection that ended since its last use: a read can be
                // sent again.
                Err(StoreError::Unavailable(_)) if tries < 2 => tries += 1,
                answer => return answer,
            }
        }
    }

    /// Changes something.
    pub(crate) async fn write(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.query(sql, values, Intent::Write).await
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
    fn new(connections: usize) -> Self {
        let permits = Arc::new(Semaphore::new(connections));
        Lane { connections, idle: Mutex::default(), permits, returned: Notify::new() }
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

impl Taken<'_> {
    /// Begins a transaction. Dropped before [`Taken::commit`], the connection
    /// is closed, which undoes everything.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        self.in_transaction = true;
        self.script(BEGIN).await.map_err(|e| fault(&e, Intent::Read))
    }

    /// One statement of a transaction: until the commit nothing is written.
    pub(crate) async fn run(
        &mut self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let texts = self.pool.texts.clone();
        self.query(&texts, sql, values).await.map_err(|e| fault(&e, Intent::Read))
    }

    /// Commits; without an answer the outcome is unknown.
    pub(crate) async fn commit(mut self) -> Result<()> {
        self.script("COMMIT").await.map_err(|e| fault(&e, Intent::Write))?;
        self.in_transaction = false;
        Ok(())
    }

    /// Undoes everything and keeps the connection.
    pub(crate) async fn roll_back(mut self) -> Result<()> {
        self.script("ROLLBACK").await.map_err(|e| fault(&e, Intent::Read))?;
        self.in_transaction = false;
        Ok(())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && connection.is_sound()
            && !self.pool.is_closed()
        {
            self.lane.idle().push(connection);
            self.lane.returned.notify_one();
        }
    }
}
