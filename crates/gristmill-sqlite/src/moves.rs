//! The few moves everything else is made of: a task enters the claim order,
//! leaves it, and frees its key's place for the one behind it.

use gristmill_core::{Queue, Result, Timestamp};
use rusqlite::params;

use crate::row::{Place, Row};
use crate::sql::Sql;
use crate::write::Write;

/// What the claim order knows of a task.
pub(crate) struct Entry<'e> {
    pub(crate) id: i64,
    pub(crate) priority: i16,
    pub(crate) run_at: Timestamp,
    pub(crate) source: Option<&'e str>,
    pub(crate) group: Option<&'e str>,
}

impl Row {
    /// Its entry in the claim order.
    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry {
            id: self.id,
            priority: self.priority,
            run_at: self.run_at,
            source: self.source.as_deref(),
            group: self.group.as_deref(),
        }
    }
}

impl Write<'_, '_> {
    /// A task enters the claim order.
    pub(crate) fn enter(&mut self, queue: &Queue, entry: &Entry<'_>) -> Result<()> {
        let delayed = entry.run_at > self.now;
        let group = queue.settings.slots.map(|_| entry.group.unwrap_or_default());
        self.db.run(
            Sql::PutReady,
            params![
                queue.number,
                entry.priority,
                entry.run_at.as_micros(),
                entry.id,
                entry.source,
                group,
                delayed,
            ],
        )?;
        self.delta(queue.number).in_order(delayed, 1);
        self.wake(queue);
        Ok(())
    }

    /// A task stands blocked, outside the claim order.
    pub(crate) fn block(&mut self, queue: &Queue, id: i64) -> Result<()> {
        self.db.run(Sql::BlockedAdd, params![id])?;
        self.delta(queue.number).blocked += 1;
        Ok(())
    }

    /// A pending task leaves the claim order, or its blocked stand.
    pub(crate) fn leave(&mut self, row: &Row) -> Result<()> {
        if row.blocked {
            self.db.run(Sql::BlockedRemove, params![row.id])?;
            self.delta(row.queue).blocked -= 1;
            return Ok(());
        }
        let delayed = self.db.one(
            Sql::ReadyLeave,
            params![row.queue, row.priority, row.run_at.as_micros(), row.id],
            |row| row.get(0),
        )?;
        if let Some(delayed) = delayed {
            self.delta(row.queue).in_order(delayed, -1);
        }
        Ok(())
    }

    /// The task has given up its key's place: the one that waited behind it
    /// enters the claim order.
    pub(crate) fn free_place(&mut self, queue: &Queue, row: &Row, held: Place) -> Result<()> {
        match (&row.key, held) {
            (Some(key), Place::InFlight) => self.unblock(queue, key).map(drop),
            _ => Ok(()),
        }
    }

    /// A key's in-flight place is free: who waited for it enters the claim
    /// order. Returns whether anyone did.
    pub(crate) fn unblock(&mut self, queue: &Queue, key: &str) -> Result<bool> {
        let waiting = self.db.one(Sql::UnblockRead, params![queue.number, key], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i16>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, Option<String>>(3)?,
                row.get::<_, Option<String>>(4)?,
            ))
        })?;
        let Some((id, priority, run_at, source, group)) = waiting else {
            return Ok(false);
        };
        self.db.run(Sql::Unblock, params![id])?;
        self.db.run(Sql::BlockedRemove, params![id])?;
        self.delta(queue.number).blocked -= 1;
        let entry = Entry {
            id,
            priority,
            run_at: Timestamp::from_micros(run_at),
            source: source.as_deref(),
            group: group.as_deref(),
        };
        self.enter(queue, &entry)?;
        Ok(true)
    }
}
