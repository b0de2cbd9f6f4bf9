//! What a connection remembers between its transactions: the queues, the next
//! task's number, and whether time can be trusted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gristmill_core::name::did_you_mean;
use gristmill_core::policy::reclaim_guard::ReclaimGuard;
use gristmill_core::{Queue, QueueName, Result, StoreError};
use gristmill_text::StoredQueue;

use crate::codec;
use crate::db::Db;
use crate::errors::fault;
use crate::sql::{Sql, at, bind};

/// A connection's memory. Another connection's commit makes it doubtful, and
/// SQLite tells of those (`data_version`).
#[derive(Debug, Default)]
pub(crate) struct Known {
    by_name: HashMap<QueueName, Arc<Queue>>,
    by_number: HashMap<u32, Arc<Queue>>,
    settings: Option<i64>,
    data_version: Option<i64>,
    pub(crate) next_id: Option<i64>,
    /// Bound queues whose triggers were looked at.
    pub(crate) bound: HashSet<u32>,
    pub(crate) guard: ReclaimGuard,
    /// The clock went back, and nothing was done about it yet.
    pub(crate) clamp: bool,
    /// The clock went back, and tasks may count as ready that are not due.
    pub(crate) demote: bool,
}

/// Whether another connection has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    Silent,
    /// Nothing was known before: one may have, before the first look.
    Unknown,
    Wrote,
}

impl Known {
    /// Drops what another connection may have changed, and says whether one
    /// has written. To be called within a transaction.
    pub(crate) fn refresh(&mut self, db: &Db<'_>) -> Result<Others> {
        let version = data_version(db)?;
        if self.data_version == Some(version) {
            return Ok(Others::Silent);
        }
        let known = self.data_version.replace(version).is_some();
        self.next_id = None;
        self.bound.clear();
        let settings = settings_version(db)?;
        if self.settings != Some(settings) {
            self.forget_queues();
            self.settings = Some(settings);
        }
        Ok(if known { Others::Wrote } else { Others::Unknown })
    }

    /// Whether another connection may have written since the last
    /// transaction; asked without one.
    pub(crate) fn others_wrote(&self, db: &Db<'_>) -> Result<bool> {
        Ok(self.data_version != Some(data_version(db)?))
    }

    /// After a rollback nothing learnt in the transaction holds.
    pub(crate) fn doubt(&mut self) {
        self.forget_queues();
        self.data_version = None;
        self.settings = None;
        self.next_id = None;
        self.bound.clear();
    }

    fn forget_queues(&mut self) {
        self.by_name.clear();
        self.by_number.clear();
    }

    /// Makes a queue's change known here and to other connections.
    pub(crate) fn changed(&mut self, db: &Db<'_>) -> Result<()> {
        self.forget_queues();
        self.bound.clear();
        let version = settings_version(db)? + 1;
        db.run(Sql::MetaSet, bind!(MetaSet { key: "settings", value: version }))?;
        self.settings = Some(version);
        Ok(())
    }

    /// The queue of that name, without asking the database.
    pub(crate) fn remembered(&self, name: &QueueName) -> Option<&Arc<Queue>> {
        self.by_name.get(name)
    }

    /// The queue of that number, without asking the database.
    pub(crate) fn remembered_number(&self, number: u32) -> Option<&Arc<Queue>> {
        self.by_number.get(&number)
    }

    /// Whether any remembered queue may lose its last second.
    pub(crate) fn any_relaxed(&self) -> bool {
        self.by_number
            .values()
            .any(|queue| queue.settings.durability == gristmill_core::Durability::Relaxed)
    }

    /// The queue of that name.
    pub(crate) fn find(&mut self, db: &Db<'_>, name: &QueueName) -> Result<Option<Arc<Queue>>> {
        if let Some(queue) = self.by_name.get(name) {
            return Ok(Some(queue.clone()));
        }
        let stored =
            db.one(Sql::QueueByName, bind!(QueueByName { name: name.as_str() }), codec::queue)?;
        stored.map(|row| self.remember(row)).transpose()
    }

    /// The queue of that name, or the error that names a similar one.
    pub(crate) fn named(&mut self, db: &Db<'_>, name: &QueueName) -> Result<Arc<Queue>> {
        match self.find(db, name)? {
            Some(queue) => Ok(queue),
            None => Err(StoreError::UnknownQueue {
                name: name.to_string(),
                suggestion: suggest(db, name)?,
            }),
        }
    }

    /// The queue a stored row names.
    pub(crate) fn numbered(&mut self, db: &Db<'_>, number: u32) -> Result<Arc<Queue>> {
        if let Some(queue) = self.by_number.get(&number) {
            return Ok(queue.clone());
        }
        let stored = db.one(Sql::QueueByNumber, bind!(QueueByNumber { number }), codec::queue)?;
        match stored {
            Some(row) => self.remember(row),
            None => Err(StoreError::corrupt(format!(
                "a task or lease names queue {number}, which does not exist"
            ))),
        }
    }

    fn remember(&mut self, row: StoredQueue) -> Result<Arc<Queue>> {
        let queue = Arc::new(row.into_queue()?);
        self.by_name.insert(queue.name.clone(), queue.clone());
        self.by_number.insert(queue.number, queue.clone());
        Ok(queue)
    }
}

/// The declared queue that was most likely meant.
pub(crate) fn suggest(db: &Db<'_>, name: &QueueName) -> Result<Option<String>> {
    let names: Vec<String> = db.all(Sql::QueueNames, [], |row| row.get(at!(QueueNames.name)))?;
    let meant = did_you_mean(name.as_str(), names.iter().map(String::as_str));
    Ok(meant.map(str::to_owned))
}

/// Grows with every commit of another connection.
fn data_version(db: &Db<'_>) -> Result<i64> {
    db.conn()
        .prepare_cached("PRAGMA data_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(at!(QueueNames.name))))
        .map_err(fault)
}

fn settings_version(db: &Db<'_>) -> Result<i64> {
    let version = db
        .one(Sql::MetaGet, bind!(MetaGet { key: "settings" }), |row| row.get(at!(MetaGet.value)))?;
    Ok(version.unwrap_or(0))
}
