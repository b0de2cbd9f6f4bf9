//! What every change works with: the connection inside a transaction, the one
//! `now` of that transaction, and the changes of counts it has yet to write.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Limits, Queue, QueueName, Result, TaskId, Timestamp};

use crate::db::Db;
use crate::delta::{Delta, Deltas};
use crate::errors::fault;
use crate::known::Known;
use crate::sql::{Sql, at, bind};

/// A transaction that writes.
pub(crate) struct Write<'a, 'c> {
    pub(crate) db: &'a Db<'c>,
    pub(crate) known: &'a mut Known,
    pub(crate) limits: &'a Limits,
    /// Read under the write lock, so that changes are in the order of their
    /// times.
    pub(crate) now: Timestamp,
    pub(crate) monotonic: Duration,
    /// Changes of the request that runs.
    deltas: Deltas,
    /// Changes of the requests of the group that succeeded.
    group: Deltas,
    /// Queues in which work may have become claimable.
    pub(crate) woken: Vec<QueueName>,
    /// A task that somebody waits for has ended.
    pub(crate) ended: bool,
    /// While many are put at once: the ids, standing together, of those that have yet
    /// to enter the claim order.
    pub(crate) unentered: Option<Unentered>,
    /// How many tasks were put from outside.
    pub(crate) puts: usize,
    /// The next number as it is written; what differs is written at the end.
    stored_next_id: Option<i64>,
}

/// The first and the last id of tasks that enter the claim order together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unentered(pub(crate) Option<(i64, i64)>);

/// Where a change can be taken back to.
struct Mark {
    deltas: Deltas,
    woken: usize,
    next_id: Option<i64>,
}

impl<'a, 'c> Write<'a, 'c> {
    pub(crate) fn new(
        db: &'a Db<'c>,
        known: &'a mut Known,
        limits: &'a Limits,
        now: Timestamp,
        monotonic: Duration,
    ) -> Self {
        let stored_next_id = known.next_id;
        Write {
            db,
            known,
            limits,
            now,
            monotonic,
            deltas: Deltas::default(),
            group: Deltas::default(),
            woken: Vec::new(),
            ended: false,
            unentered: None,
            puts: 0,
            stored_next_id,
        }
    }

    /// The queue of that name, or the error that names a similar one.
    pub(crate) fn queue(&mut self, name: &QueueName) -> Result<Arc<Queue>> {
        self.known.named(self.db, name)
    }

    /// The queue a stored row names.
    pub(crate) fn numbered(&mut self, number: u32) -> Result<Arc<Queue>> {
        self.known.numbered(self.db, number)
    }

    /// The count changes of a queue.
    pub(crate) fn delta(&mut self, number: u32) -> &mut Delta {
        self.deltas.of(number)
    }

    /// Notes that work may have become claimable.
    pub(crate) fn wake(&mut self, queue: &Queue) {
        if self.woken.last() != Some(&queue.name) {
            self.woken.push(queue.name.clone());
        }
    }

    /// The queue's pending tasks, uncommitted changes included.
    pub(crate) fn pending(&self, number: u32) -> Result<i64> {
        let stored =
            self.db.one(Sql::CountStanding, bind!(CountStanding { queue: number }), |row| {
                row.get(at!(CountStanding.pending))
            })?;
        Ok(stored.unwrap_or(0i64) + self.group.pending(number) + self.deltas.pending(number))
    }

    /// The queue's tasks that need doing or looking at.
    pub(crate) fn standing(&self, number: u32) -> Result<i64> {
        let stored =
            self.db.one(Sql::CountStanding, bind!(CountStanding { queue: number }), |row| {
                Ok(row.get::<_, i64>(at!(CountStanding.pending))?
                    + row.get::<_, i64>(at!(CountStanding.processing))?
                    + row.get::<_, i64>(at!(CountStanding.failed_now))?)
            })?;
        let changed = |deltas: &Deltas| deltas.clone().of(number).total();
        Ok(stored.unwrap_or(0) + changed(&self.group) + changed(&self.deltas))
    }

    /// A number no task had before.
    pub(crate) fn next_id(&mut self) -> Result<TaskId> {
        self.next_ids(1)
    }

    /// The first of so many numbers that no task had before.
    pub(crate) fn next_ids(&mut self, count: i64) -> Result<TaskId> {
        let id = match self.known.next_id {
            Some(id) => id,
            None => {
                let id = self.db.one(Sql::IdNext, [], |row| row.get(at!(IdNext.next)))?;
                let id = id.unwrap_or(1);
                self.stored_next_id = Some(id);
                id
            }
        };
        self.known.next_id = Some(id + count);
        Ok(TaskId(id))
    }

    /// Runs a change that may be taken back: it stays when `keep` says so of
    /// its answer.
    pub(crate) fn undoable<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T>,
        keep: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        self.steer("SAVEPOINT gristmill_undoable")?;
        let mark = Mark {
            deltas: self.deltas.clone(),
            woken: self.woken.len(),
            next_id: self.known.next_id,
        };
        let answer = change(self);
        let kept = answer.as_ref().is_ok_and(keep);
        let steered = if kept {
            Ok(())
        } else {
            self.deltas = mark.deltas;
            self.woken.truncate(mark.woken);
            // Where the number was first asked for inside, it was not taken.
            self.known.next_id = mark.next_id.or(self.stored_next_id);
            self.steer("ROLLBACK TO gristmill_undoable")
        };
        let steered = steered.and_then(|()| self.steer("RELEASE gristmill_undoable"));
        // The change's own error says more than what follows from it.
        answer.and_then(|answer| steered.map(|()| answer))
    }

    fn steer(&self, statement: &str) -> Result<()> {
        self.db.steer(statement).map_err(fault)
    }

    /// The running request succeeded.
    pub(crate) fn keep_request(&mut self) {
        self.group.take_over(&mut self.deltas);
    }

    /// The running request failed without having written anything.
    pub(crate) fn drop_request(&mut self, woken: usize) {
        self.deltas.clear();
        self.woken.truncate(woken);
    }

    /// Writes what was gathered: counts and the next task's number.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.keep_request();
        self.group.flush(self.db, self.now)?;
        if self.known.next_id != self.stored_next_id {
            self.db
                .run(Sql::MetaSet, bind!(MetaSet { key: "next_id", value: self.known.next_id }))?;
            self.stored_next_id = self.known.next_id;
        }
        Ok(())
    }
}
