//! Numbers, from the kept counts: nothing here counts rows.

use gristmill_core::{Minute, Queue, QueueName, QueueStats, Result, Timestamp, Waits};
use tokio_postgres::Row;

use crate::answer::{column, readable};
use crate::codec::{self, count, small};
use crate::deadline::Class;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

impl Inner {
    /// All queues, by number.
    pub(crate) async fn queues(&self) -> Result<Vec<Queue>> {
        let rows = self.pool.read(Sql::QueueAll, &[]).await?;
        Ok(readable(&rows, "a queue", codec::queue))
    }

    /// All queues' numbers, by queue number.
    pub(crate) async fn stats(&self) -> Result<Vec<QueueStats>> {
        let rows = self.pool.read(Sql::Stats, &[&self.now()]).await?;
        Ok(readable(&rows, "a queue's numbers", stats))
    }

    /// A queue's last minutes, oldest first.
    pub(crate) async fn minutes(
        &self,
        queue: &QueueName,
        back: std::time::Duration,
    ) -> Result<Vec<Minute>> {
        let number = self.number(queue).await?;
        let mut connection = self.pool.take_to_read(Class::Operator).await?;
        let now = self.time(&mut connection).await?;
        let rows = connection.run(Sql::Minutes, &[&number, &At(now.before(back))]).await?;
        let minutes = rows.iter().map(|row| {
            let mut waits = Waits::default();
            // Nothing where nothing was claimed.
            let said: Option<Vec<i64>> = column(row, at!(Minutes.waits))?;
            for (n, said) in waits.0.iter_mut().zip(said.unwrap_or_default()) {
                *n = count(said);
            }
            Ok(Minute {
                at: column::<At>(row, at!(Minutes.at))?.0,
                put: count(column(row, at!(Minutes.put))?),
                done: count(column(row, at!(Minutes.done))?),
                failed: count(column(row, at!(Minutes.failed))?),
                waits,
            })
        });
        // Of a clock that was ahead, if nobody noticed it yet, or it is not folded.
        let come = |minute: &Result<Minute>| minute.as_ref().map_or(true, |m| m.at <= now);
        minutes.filter(come).collect()
    }
}

fn stats(row: &Row) -> Result<QueueStats> {
    let now: Timestamp = column::<At>(row, at!(Stats.now))?.0;
    let number = |at| Ok(count(column(row, at)?));
    let name = codec::queue_name(column(row, at!(Stats.queue))?)?;
    let mut stats = QueueStats::new(name, small(column(row, at!(Stats.number))?));
    stats.paused = column(row, at!(Stats.paused))?;
    stats.capacity = column::<Option<i64>>(row, at!(Stats.capacity))?.map(count);
    stats.oldest_ready =
        column::<Option<At>>(row, at!(Stats.oldest_ready))?.map(|at| now.since(at.0));
    stats.ready = number(at!(Stats.ready))?;
    stats.delayed = number(at!(Stats.delayed))?;
    stats.blocked = number(at!(Stats.blocked))?;
    stats.processing = number(at!(Stats.processing))?;
    stats.failed = number(at!(Stats.failed_now))?;
    stats.done_kept = number(at!(Stats.done_kept))?;
    let counters = &mut stats.counters;
    counters.put = number(at!(Stats.put))?;
    counters.duplicate = number(at!(Stats.duplicate))?;
    counters.replaced = number(at!(Stats.replaced))?;
    counters.refused = number(at!(Stats.refused))?;
    counters.claimed = number(at!(Stats.claimed))?;
    counters.done = number(at!(Stats.done))?;
    counters.retried = number(at!(Stats.retried))?;
    counters.failed = number(at!(Stats.failed))?;
    counters.released = number(at!(Stats.released))?;
    counters.expired = number(at!(Stats.expired))?;
    counters.lease_lost = number(at!(Stats.lease_lost))?;
    counters.cancelled = number(at!(Stats.cancelled))?;
    counters.discarded = number(at!(Stats.discarded))?;
    counters.resolved = number(at!(Stats.resolved))?;
    counters.operator_retried = number(at!(Stats.operator_retried))?;
    counters.subject_gone = number(at!(Stats.subject_gone))?;
    Ok(stats)
}
