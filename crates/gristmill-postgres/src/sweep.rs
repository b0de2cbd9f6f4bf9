//! What time brings.

use gristmill_core::{Result, SweepReport, TaskId};
use tokio_postgres::Row;

use crate::answer::column;
use crate::codec::{count, from_span};
use crate::errors::corrupt;
use crate::sql::Sql;
use crate::store::Inner;

/// The tasks that failed because their last lease ran out; null where none did.
pub(crate) fn failed_by_expiry(row: &Row, at: usize) -> Result<Vec<TaskId>> {
    let ids = column::<Option<Vec<i64>>>(row, at)?.unwrap_or_default();
    Ok(ids.into_iter().map(TaskId).collect())
}

impl Inner {
    fn leases(&self) -> i32 {
        i32::try_from(self.limits.reclaimed_leases).unwrap_or(i32::MAX)
    }

    fn kept(&self) -> i32 {
        i32::try_from(self.limits.history).unwrap_or(i32::MAX)
    }

    /// Takes back tasks of all queues whose lease ran out.
    pub(crate) async fn reclaim(&self) -> Result<u64> {
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&self.leases(), &self.held(), &self.kept(), &self.now()];
        let rows = self.pool.write(Sql::Reclaim, &values).await?;
        let taken = rows.first().map_or(Ok(0), |row| column::<i64>(row, 0))?;
        if taken > 0 {
            self.everything_woken();
        }
        Ok(count(taken))
    }

    /// Does everything that is due with time.
    pub(crate) async fn sweep(&self) -> Result<SweepReport> {
        let page = i32::try_from(self.limits.page).unwrap_or(i32::MAX);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&page, &self.leases(), &self.held(), &self.kept(), &self.now()];
        let rows = self.pool.write(Sql::Sweep, &values).await?;
        let row = rows.first().ok_or_else(|| corrupt("a sweep", "it has no answer"))?;
        let number = |at| Ok(count(column(row, at)?));
        let report = SweepReport {
            reclaimed: number(0)?,
            failed: failed_by_expiry(row, 7)?,
            promoted: number(1)?,
            unblocked: number(2)?,
            forgotten_ids: number(3)?,
            pruned_done: number(4)?,
            pruned_failed: number(5)?,
            forgotten_workers: number(6)?,
            oldest_transaction: Some(from_span(column(row, 8)?)),
        };
        if report.reclaimed > 0 || report.unblocked > 0 {
            self.everything_woken();
        }
        Ok(report)
    }

    /// Adds appended counts to the kept ones, so that readers sum up little.
    pub(crate) async fn fold(&self) -> Result<()> {
        self.pool.write(Sql::Fold, &[]).await.map(drop)
    }
}
