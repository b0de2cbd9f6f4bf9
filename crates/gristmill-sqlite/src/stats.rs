//! Numbers, from the kept counts: nothing here counts rows.

use std::time::Duration;

use gristmill_core::{Counters, Minute, Queue, QueueName, QueueStats, Result, Timestamp};
use gristmill_text::StoredQueue;
use rusqlite::{Row as SqlRow, params};

use crate::codec;
use crate::db::Db;
use crate::delta::unsigned;
use crate::known::Known;
use crate::sql::Sql;

/// All queues, by number.
pub(crate) fn queues(db: &Db<'_>) -> Result<Vec<Queue>> {
    db.all(Sql::QueueAll, [], codec::queue)?.into_iter().map(StoredQueue::into_queue).collect()
}

/// All queues' numbers, and whether some tasks fell due that are still counted
/// as delayed.
pub(crate) fn stats(db: &Db<'_>, now: Timestamp) -> Result<(Vec<QueueStats>, bool)> {
    let counts = db.all(Sql::CountAll, [], Counts::read)?;
    let mut stats = Vec::with_capacity(counts.len());
    for queue in queues(db)? {
        let counts =
            counts.iter().find(|counts| counts.queue == queue.number).copied().unwrap_or_default();
        let [ready, delayed, blocked, processing, failed, done_kept] = counts.standing;
        stats.push(QueueStats {
            number: queue.number,
            ready,
            delayed,
            blocked,
            processing,
            failed,
            done_kept,
            oldest_ready: oldest_due(db, queue.number, now)?.map(|at| now.since(at)),
            paused: queue.paused,
            capacity: queue.settings.capacity,
            counters: counts.counters,
            queue: queue.name,
        });
    }
    let lagging = db.any(Sql::ReadyDueAny, params![now.as_micros()])?;
    Ok((stats, lagging))
}

/// When the oldest task that is due fell due.
fn oldest_due(db: &Db<'_>, number: u32, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut after = i64::MIN;
    let mut oldest: Option<i64> = None;
    while let Some(level) =
        db.one(Sql::ReadyLevel, params![number, after], |row| row.get::<_, i64>(0))?
    {
        let first: Option<i64> =
            db.one(Sql::ReadyOldest, params![number, level], |row| row.get(0))?;
        let first = first.filter(|at| *at <= now.as_micros());
        oldest = [oldest, first].into_iter().flatten().min();
        after = level;
    }
    Ok(oldest.map(Timestamp::from_micros))
}

/// A queue's last minutes, oldest first.
pub(crate) fn minutes(
    db: &Db<'_>,
    known: &mut Known,
    queue: &QueueName,
    back: Duration,
    now: Timestamp,
) -> Result<Vec<Minute>> {
    let queue = known.named(db, queue)?;
    let from = now.before(back).minute().as_micros();
    let mut minutes = db.all(Sql::MinuteList, params![queue.number, from], |row| {
        Ok(Minute {
            at: Timestamp::from_micros(row.get(0)?),
            put: unsigned(row.get(1)?),
            done: unsigned(row.get(2)?),
            failed: unsigned(row.get(3)?),
        })
    })?;
    // Of a clock that was ahead, if nobody noticed it yet.
    minutes.retain(|minute| minute.at <= now);
    Ok(minutes)
}

/// A queue's kept counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) queue: u32,
    /// Ready, delayed, blocked, processing, failed, done.
    pub(crate) standing: [u64; 6],
    pub(crate) counters: Counters,
}

impl Counts {
    pub(crate) fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let at = |column: usize| row.get::<_, i64>(column).map(unsigned);
        Ok(Counts {
            queue: row.get(0)?,
            standing: [at(1)?, at(2)?, at(3)?, at(4)?, at(5)?, at(6)?],
            counters: Counters {
                put: at(7)?,
                duplicate: at(8)?,
                replaced: at(9)?,
                refused: at(10)?,
                claimed: at(11)?,
                done: at(12)?,
                retried: at(13)?,
                failed: at(14)?,
                released: at(15)?,
                expired: at(16)?,
                lease_lost: at(17)?,
                cancelled: at(18)?,
                discarded: at(19)?,
                resolved: at(20)?,
                operator_retried: at(21)?,
                subject_gone: at(22)?,
            },
        })
    }
}
