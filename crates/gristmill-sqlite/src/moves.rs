//! The few moves everything else is made of: a task enters the claim order,
//! leaves it, and frees its key's place for the one behind it.

use gristmill_core::{Queue, Result, Timestamp};

use crate::row::{Place, Row};
use crate::sql::{Sql, at, bind};
use crate::write::{Unentered, Write};

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
        let grouped = queue.settings.is_grouped();
        let group = grouped.then(|| entry.group.unwrap_or_default());
        self.db.run(
            Sql::PutReady,
            bind!(PutReady {
                queue: queue.number,
                priority: entry.priority,
                run_at: entry.run_at.as_micros(),
                id: entry.id,
                source: entry.source,
                grp: group,
                delayed
            }),
        )?;
        self.delta(queue.number).in_order(delayed, 1);
        self.wake(queue);
        Ok(())
    }

    /// A new task enters the claim order: with the others of its put, where those are
    /// gathered.
    pub(crate) fn enter_new(&mut self, queue: &Queue, entry: &Entry<'_>) -> Result<()> {
        let Some(Unentered(some)) = &mut self.unentered else { return self.enter(queue, entry) };
        *some = Some((some.map_or(entry.id, |(first, _)| first), entry.id));
        let delayed = entry.run_at > self.now;
        self.delta(queue.number).in_order(delayed, 1);
        self.wake(queue);
        Ok(())
    }

    /// Those that a put has gathered enter the claim order, all by one statement.
    pub(crate) fn enter_gathered(&mut self, queue: &Queue) -> Result<()> {
        let Some(Unentered(some)) = &mut self.unentered else { return Ok(()) };
        let Some((first, last)) = some.take() else { return Ok(()) };
        let slotted = queue.settings.is_grouped();
        self.db.run(
            Sql::PutReadyMany,
            bind!(PutReadyMany { slotted, now: self.now.as_micros(), first, last }),
        )?;
        Ok(())
    }

    /// A task stands blocked, outside the claim order.
    pub(crate) fn block(&mut self, queue: &Queue, id: i64) -> Result<()> {
        self.db.run(Sql::BlockedAdd, bind!(BlockedAdd { id }))?;
        self.delta(queue.number).blocked += 1;
        Ok(())
    }

    /// A pending task leaves the claim order, or its blocked stand.
    pub(crate) fn leave(&mut self, row: &Row) -> Result<()> {
        if row.blocked {
            self.db.run(Sql::BlockedRemove, bind!(BlockedRemove { id: row.id }))?;
            self.delta(row.queue).blocked -= 1;
            return Ok(());
        }
        let delayed = self.db.one(
            Sql::ReadyLeave,
            bind!(ReadyLeave {
                queue: row.queue,
                priority: row.priority,
                run_at: row.run_at.as_micros(),
                id: row.id
            }),
            |row| row.get(at!(ReadyLeave.delayed)),
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
        let waiting = self.db.one(
            Sql::UnblockRead,
            bind!(UnblockRead { queue: queue.number, key }),
            |row| {
                Ok((
                    row.get::<_, i64>(at!(UnblockRead.id))?,
                    row.get::<_, i16>(at!(UnblockRead.priority))?,
                    row.get::<_, i64>(at!(UnblockRead.run_at))?,
                    row.get::<_, Option<String>>(at!(UnblockRead.source))?,
                    row.get::<_, Option<String>>(at!(UnblockRead.grp))?,
                ))
            },
        )?;
        let Some((id, priority, run_at, source, group)) = waiting else {
            return Ok(false);
        };
        self.db.run(Sql::Unblock, bind!(Unblock { id }))?;
        self.db.run(Sql::BlockedRemove, bind!(BlockedRemove { id }))?;
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
