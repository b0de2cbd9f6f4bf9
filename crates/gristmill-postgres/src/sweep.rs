//! What time brings: a look at what is due, and then bounded steps, each a
//! transaction of its own, so that nobody waits behind any of it.

use std::time::Duration;

use gristmill_core::{Clock as _, QueueName, Result, SweepReport, TaskId};
use tokio_postgres::Row;

use crate::answer::column;
use crate::codec::{self, count, from_span};
use crate::errors::corrupt;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

/// A sweep goes on with a chore that has more to do for so long; the rest is the
/// next one's.
pub(crate) const LONGEST: Duration = Duration::from_millis(500);

/// Chores that throw away what is past its keeping time.
const FORGETTING: [&str; 6] = ["ids", "done", "failed", "endings", "documents", "minutes"];

/// The tasks that failed because their last lease ran out; null where none did.
pub(crate) fn failed_by_expiry(row: &Row, at: usize) -> Result<Vec<TaskId>> {
    let ids = column::<Option<Vec<i64>>>(row, at)?.unwrap_or_default();
    Ok(ids.into_iter().map(TaskId).collect())
}

impl Inner {
    /// Takes back tasks of all queues whose lease ran out.
    pub(crate) async fn reclaim(&self) -> Result<u64> {
        self.bring_back().await?;
        let mut report = SweepReport::default();
        self.reclaim_into(&mut report).await?;
        Ok(report.reclaimed)
    }

    async fn reclaim_into(&self, report: &mut SweepReport) -> Result<()> {
        let leases = i32::try_from(self.limits.reclaimed_leases).unwrap_or(i32::MAX);
        let kept = i32::try_from(self.limits.history).unwrap_or(i32::MAX);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&leases, &self.held(), &kept, &self.now()];
        let rows = self.pool.write(Sql::Reclaim, &values).await?;
        let row = rows.first().ok_or_else(|| corrupt("a reclaim", "it has no answer"))?;
        let taken = count(column(row, at!(Reclaim.taken))?);
        report.reclaimed += taken;
        report.failed.extend(failed_by_expiry(row, at!(Reclaim.failed))?);
        if taken > 0 {
            self.everything_woken();
        }
        Ok(())
    }

    /// Does what is due with time. What others do at this moment is left to them.
    pub(crate) async fn sweep(&self) -> Result<SweepReport> {
        let begun = self.steady.monotonic();
        let rows = self.pool.write(Sql::DueChores, &[&self.now()]).await?;
        let row = rows.first().ok_or_else(|| corrupt("a sweep", "it has no answer"))?;
        self.compare(column::<At>(row, at!(DueChores.now))?.0, begun);
        self.bring_back().await?;
        let chores: Vec<String> = column(row, at!(DueChores.chores))?;
        let oldest_transaction = Some(from_span(column(row, at!(DueChores.oldest_transaction))?));
        // Of what comes meanwhile notices tell, where they are heard.
        let quiet = column::<Option<i64>>(row, at!(DueChores.quiet))?.map(from_span);
        let quiet = quiet.filter(|_| self.ear.is_told() && self.now().is_none());
        let mut report = SweepReport { oldest_transaction, quiet, ..SweepReport::default() };
        for chore in &chores {
            if chore == "reclaim" {
                self.reclaim_into(&mut report).await?;
                continue;
            }
            if FORGETTING.contains(&chore.as_str()) && !self.may_forget() {
                // Counts are added up all the same.
                if chore == "minutes" {
                    self.fold().await?;
                }
                continue;
            }
            let mut done = 0;
            while self.chore(chore, &mut done).await?
                && self.steady.monotonic().saturating_sub(begun) < LONGEST
            {}
            match chore.as_str() {
                "promote" => report.promoted += done,
                "unblock" => report.unblocked += done,
                "markers" => report.put_again += done,
                "subjects" => report.without_subject += done,
                "ids" => report.forgotten_ids += done,
                "done" => report.pruned_done += done,
                "failed" => report.pruned_failed += done,
                "endings" => report.forgotten_endings += done,
                "documents" => report.forgotten_documents += done,
                _ => {}
            }
        }
        Ok(report)
    }

    /// One step of a chore; whether there may be more of it.
    async fn chore(&self, chore: &str, done: &mut u64) -> Result<bool> {
        let rows = self.pool.write(Sql::DoChore, &[&chore, &self.now()]).await?;
        let row = rows.first().ok_or_else(|| corrupt("a chore", "it has no answer"))?;
        *done += count(column(row, at!(DoChore.done))?);
        let woken: Vec<String> = column::<Option<_>>(row, at!(DoChore.woken))?.unwrap_or_default();
        let woken: Vec<QueueName> =
            woken.iter().map(|name| codec::queue_name(name)).collect::<Result<_>>()?;
        self.woken(&woken);
        column(row, at!(DoChore.more))
    }

    /// Adds appended counts to the kept ones, so that readers sum up little.
    pub(crate) async fn fold(&self) -> Result<()> {
        self.pool.write(Sql::Fold, &[]).await.map(drop)
    }
}
