//! Putting and completing inside the caller's own transaction, on the caller's
//! own connection to the same file.

use std::sync::Arc;

use gristmill_core::policy::refused_follow_up::not_done;
use gristmill_core::{
    Bell, PutReport, PutRequest, QueueName, Result, SettleAnswer, Settlement, StoreError,
    WakeSignal,
};
use rusqlite::{Connection, Transaction};

use crate::SqliteStore;
use crate::db::Db;
use crate::known::Known;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// Wakes workers, here and in other processes, once the caller's transaction is
/// committed.
///
/// Say [`WakeGuard::committed`] right after the commit. A guard that is dropped
/// wakes as well: a worker that looks in vain costs less than one that sleeps.
#[derive(Debug)]
#[must_use = "say `committed()` after the commit, so that workers hear of it at once"]
pub struct WakeGuard {
    wake: Arc<WakeSignal>,
    bell: Bell,
    queues: Vec<QueueName>,
    /// A task that somebody waits for has ended.
    ended: bool,
}

impl WakeGuard {
    /// The transaction was committed.
    pub fn committed(self) {
        drop(self);
    }
}

impl Drop for WakeGuard {
    fn drop(&mut self) {
        self.wake.wake(&self.queues);
        if self.ended {
            self.wake.wake_ended();
        }
        if self.ended || !self.queues.is_empty() {
            self.bell.ring();
        }
    }
}

impl SqliteStore {
    /// Puts tasks in the caller's transaction: they stand when, and only when,
    /// it is committed. Its durability is the caller's connection's.
    ///
    /// # Errors
    /// As `put`, and when the transaction is on another file. Nothing of the
    /// put stands then; the transaction itself is still the caller's.
    pub fn put_in(
        &self,
        transaction: &Transaction<'_>,
        request: &PutRequest,
    ) -> Result<(PutReport, WakeGuard)> {
        self.inside(transaction, |write| write.put(request))
    }

    /// Settles in the caller's transaction: the handler's effect and its
    /// settlement come true together. The worker's own `done` then answers
    /// *gone*, which is success.
    ///
    /// # Errors
    /// As `settle`, when the transaction is on another file, and when a
    /// follow-up of a *done* is refused: the effect beside it would stand
    /// without what follows from it. Nothing is settled then; the transaction
    /// itself is still the caller's, to roll back.
    pub fn complete_in(
        &self,
        transaction: &Transaction<'_>,
        settlements: &[Settlement],
    ) -> Result<(Vec<SettleAnswer>, WakeGuard)> {
        self.inside(transaction, |write| {
            let answers = write.settle(settlements)?;
            match not_done(settlements, &answers, write.limits) {
                Some(why) => Err(StoreError::invalid(why)),
                None => Ok(answers),
            }
        })
    }

    fn inside<T>(
        &self,
        conn: &Connection,
        work: impl FnOnce(&mut Write<'_, '_>) -> Result<T>,
    ) -> Result<(T, WakeGuard)> {
        self.is_open()?;
        let db = Db::guest(conn);
        self.check_same_file(&db)?;
        let mut known = Known::default();
        let (now, monotonic) = (self.clock.now(), self.clock.monotonic());
        let mut write = Write::new(&db, &mut known, &self.limits, now, monotonic);
        let answer = write.undoable(
            |write| {
                let answer = work(write)?;
                write.flush()?;
                Ok(answer)
            },
            |_| true,
        )?;
        let (wake, bell) = (self.wake.clone(), self.bell.clone());
        let guard = WakeGuard { wake, bell, queues: write.woken, ended: write.ended };
        Ok((answer, guard))
    }

    fn check_same_file(&self, db: &Db<'_>) -> Result<()> {
        let id: Option<String> = db
            .one(Sql::MetaGet, bind!(MetaGet { key: "store_id" }), |row| {
                row.get(at!(MetaGet.value))
            })
            .map_err(|error| match error {
                StoreError::Corrupt(said) if format!("{said:#}").contains("no such table") => {
                    StoreError::invalid("the transaction's file holds no store".to_owned())
                }
                other => other,
            })?;
        if id.as_deref() == Some(self.id.as_str()) {
            Ok(())
        } else {
            Err(StoreError::invalid(format!(
                "the transaction is on another file than {}",
                self.path.display()
            )))
        }
    }
}
