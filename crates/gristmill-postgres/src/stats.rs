//! Numbers, from the kept counts: nothing here counts rows.

use gristmill_core::{Counters, Minute, Queue, QueueName, QueueStats, Result, Timestamp};
use tokio_postgres::Row;

use crate::answer::{column, readable};
use crate::codec::{self, count, small};
use crate::deadline::Class;
use crate::sql::Sql;
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
            Ok(Minute {
                at: column::<At>(row, 0)?.0,
                put: count(column(row, 1)?),
                done: count(column(row, 2)?),
                failed: count(column(row, 3)?),
            })
        });
        // Of a clock that was ahead, if nobody noticed it yet, or it is not folded.
        let come = |minute: &Result<Minute>| minute.as_ref().map_or(true, |m| m.at <= now);
        minutes.filter(come).collect()
    }
}

fn stats(row: &Row) -> Result<QueueStats> {
    let now: Timestamp = column::<At>(row, 5)?.0;
    let number = |at| Ok(count(column(row, at)?));
    Ok(QueueStats {
        queue: codec::queue_name(column(row, 0)?)?,
        number: small(column(row, 1)?),
        paused: column(row, 2)?,
        capacity: column::<Option<i64>>(row, 3)?.map(count),
        oldest_ready: column::<Option<At>>(row, 4)?.map(|at| now.since(at.0)),
        ready: number(6)?,
        delayed: number(7)?,
        blocked: number(8)?,
        processing: number(9)?,
        failed: number(10)?,
        done_kept: number(11)?,
        counters: Counters {
            put: number(12)?,
            duplicate: number(13)?,
            replaced: number(14)?,
            refused: number(15)?,
            claimed: number(16)?,
            done: number(17)?,
            retried: number(18)?,
            failed: number(19)?,
            released: number(20)?,
            expired: number(21)?,
            lease_lost: number(22)?,
            cancelled: number(23)?,
            discarded: number(24)?,
            resolved: number(25)?,
            operator_retried: number(26)?,
            subject_gone: number(27)?,
        },
    })
}
