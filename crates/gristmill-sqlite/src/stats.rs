//! Numbers, from the kept counts: nothing here counts rows.

use std::time::Duration;

use gristmill_core::{Counters, Minute, Queue, QueueName, QueueStats, Result, Timestamp, Waits};
use gristmill_text::StoredQueue;
use rusqlite::Row as SqlRow;

use crate::codec;
use crate::db::Db;
use crate::delta::unsigned;
use crate::known::Known;
use crate::sql::{Sql, at, bind};

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
        let mut of_queue = QueueStats::new(queue.name, queue.number);
        [of_queue.ready, of_queue.delayed, of_queue.blocked] = [ready, delayed, blocked];
        [of_queue.processing, of_queue.failed, of_queue.done_kept] =
            [processing, failed, done_kept];
        of_queue.oldest_ready = oldest_due(db, queue.number, now)?.map(|at| now.since(at));
        of_queue.paused = queue.paused;
        of_queue.capacity = queue.settings.capacity;
        of_queue.counters = counts.counters;
        stats.push(of_queue);
    }
    let lagging = db.any(Sql::ReadyDueAny, bind!(ReadyDueAny { now: now.as_micros() }))?;
    Ok((stats, lagging))
}

/// When the oldest task that is due fell due.
fn oldest_due(db: &Db<'_>, number: u32, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut after = i64::MIN;
    let mut oldest: Option<i64> = None;
    while let Some(level) =
        db.one(Sql::ReadyLevel, bind!(ReadyLevel { queue: number, after }), |row| {
            row.get::<_, i64>(at!(ReadyLevel.priority))
        })?
    {
        let first: Option<i64> = db.one(
            Sql::ReadyOldest,
            bind!(ReadyOldest { queue: number, priority: level }),
            |row| row.get(at!(ReadyOldest.run_at)),
        )?;
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
    let since = now.before(back).minute().as_micros();
    let mut minutes =
        db.all(Sql::MinuteList, bind!(MinuteList { queue: queue.number, since }), |row| {
            let number = |at: usize| row.get(at).map(unsigned);
            Ok(Minute {
                at: Timestamp::from_micros(row.get(at!(MinuteList.minute))?),
                put: number(at!(MinuteList.put))?,
                done: number(at!(MinuteList.done))?,
                failed: number(at!(MinuteList.failed))?,
                waits: Waits([
                    number(at!(MinuteList.wait_100ms))?,
                    number(at!(MinuteList.wait_1s))?,
                    number(at!(MinuteList.wait_10s))?,
                    number(at!(MinuteList.wait_1m))?,
                    number(at!(MinuteList.wait_10m))?,
                    number(at!(MinuteList.wait_1h))?,
                    number(at!(MinuteList.wait_longer))?,
                ]),
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
        let count = |column: usize| row.get::<_, i64>(column).map(unsigned);
        let mut counters = Counters::default();
        counters.put = count(at!(CountAll.put))?;
        counters.duplicate = count(at!(CountAll.duplicate))?;
        counters.replaced = count(at!(CountAll.replaced))?;
        counters.refused = count(at!(CountAll.refused))?;
        counters.claimed = count(at!(CountAll.claimed))?;
        counters.done = count(at!(CountAll.done))?;
        counters.retried = count(at!(CountAll.retried))?;
        counters.failed = count(at!(CountAll.failed))?;
        counters.released = count(at!(CountAll.released))?;
        counters.expired = count(at!(CountAll.expired))?;
        counters.lease_lost = count(at!(CountAll.lease_lost))?;
        counters.cancelled = count(at!(CountAll.cancelled))?;
        counters.discarded = count(at!(CountAll.discarded))?;
        counters.resolved = count(at!(CountAll.resolved))?;
        counters.operator_retried = count(at!(CountAll.operator_retried))?;
        counters.subject_gone = count(at!(CountAll.subject_gone))?;
        Ok(Counts {
            queue: row.get(at!(CountAll.queue))?,
            standing: [
                count(at!(CountAll.ready))?,
                count(at!(CountAll.delayed))?,
                count(at!(CountAll.blocked))?,
                count(at!(CountAll.processing))?,
                count(at!(CountAll.failed_now))?,
                count(at!(CountAll.done_kept))?,
            ],
            counters,
        })
    }
}
