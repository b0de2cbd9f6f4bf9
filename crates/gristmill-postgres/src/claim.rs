//! Claiming: the request, the hint it begins at, and the tasks it brings.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{
    Claim, ClaimRequest, ClaimedTask, Clock as _, Headers, Payload, QueueName, Result, Settings,
    TaskId,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::answer::column;
use crate::codec::{self, from_span, small, span};
use crate::errors::corrupt;
use crate::hint::{Begin, Ended, Hint};
use crate::sql::Sql;
use crate::store::Inner;
use crate::sweep::failed_by_expiry;
use crate::wire::{At, Uuid};

impl Inner {
    /// Takes due tasks under a new lease.
    pub(crate) async fn claim(self: &Arc<Self>, request: ClaimRequest) -> Result<Claim> {
        // The queue's own lease is checked where it is declared.
        request.lease_on(&Settings { lease: Duration::from_secs(60), ..Settings::default() })?;
        let begun = self.steady.monotonic();
        let Begin { hint, sweep, clean } = match request.source {
            None => self.hints.begin(&request.queue, begun),
            Some(_) => Begin::FRONT,
        };
        let max = i32::try_from(request.max.min(self.limits.claim_tasks)).unwrap_or(i32::MAX);
        let rows = self
            .pool
            .write(
                Sql::Claim,
                &[
                    &request.queue.as_str(),
                    &max,
                    &request.lease.map(span),
                    &request.worker.as_str(),
                    &request.source,
                    &Uuid(request.token),
                    &hint.map(|hint| hint.level),
                    &hint.map(|hint| At(hint.run_at)),
                    &hint.map(|hint| hint.id),
                    &sweep,
                    &self.held(),
                    &i64::try_from(self.limits.claim_bytes).unwrap_or(i64::MAX),
                    &i32::try_from(self.limits.reclaimed_leases).unwrap_or(i32::MAX),
                    &i32::try_from(self.limits.history).unwrap_or(i32::MAX),
                    &self.now(),
                    &clean.map(At),
                ],
            )
            .await;
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return Err(self.named(error, &request.queue).await),
        };
        let first = rows.first().ok_or_else(|| corrupt("a claim", "it has no answer"))?;
        let now = column::<At>(first, 0)?.0;
        self.observe(now, begun);
        let lease = from_span(column(first, 1)?);
        let mut claim = request.nothing_yet(lease, column(first, 2)?);
        claim.next_due = column::<Option<At>>(first, 3)?.map(|at| at.0.since(now));
        let swept = column::<Option<i64>>(first, 4)?.map(from_span);
        claim.failed = failed_by_expiry(first, 21)?;
        // The first row may be there for what is told of the claim itself.
        let taken = if column::<Option<i64>>(first, 5)?.is_some() { 0 } else { 1 };
        if let Some(rows) = rows.get(taken..) {
            claim.tasks = rows.iter().map(task).collect::<Result<_>>()?;
            // The hint's part comes before the front's.
            claim.tasks.sort_by_key(|task| (task.priority, task.run_at, task.id));
        }
        if request.source.is_none() {
            let last = claim.tasks.last();
            let hint =
                last.map(|task| Hint { level: task.priority, run_at: task.run_at, id: task.id.0 });
            let clean = column::<bool>(first, 22)?.then_some(now);
            let ended = Ended { hint, swept, clean };
            if let Some(end) = self.hints.ended(&claim.queue, ended, begun) {
                let (inner, queue) = (self.clone(), claim.queue.clone());
                self.pool.driver.spawn(async move { inner.look_behind(&queue, end).await });
            }
        }
        Ok(claim)
    }

    /// Looks for a task that claims have passed by, and sends them there.
    async fn look_behind(&self, queue: &QueueName, end: Hint) {
        let begun = self.steady.monotonic();
        let found = self.behind(queue, end).await;
        let took = self.steady.monotonic().saturating_sub(begun);
        let place = found.unwrap_or_else(|error| {
            tracing::debug!(%queue, %error, "nobody looked behind the last claim");
            None
        });
        self.hints.found(queue, place, took, begun);
        if place.is_some() {
            self.ear.wake.wake(std::slice::from_ref(queue));
        }
    }

    async fn behind(&self, queue: &QueueName, end: Hint) -> Result<Option<Hint>> {
        let values: [&(dyn ToSql + Sync); 5] =
            [&queue.as_str(), &end.level, &At(end.run_at), &end.id, &self.now()];
        let rows = self.pool.read(Sql::Behind, &values).await?;
        let place = |row| {
            Ok(Hint { level: end.level, run_at: column::<At>(row, 0)?.0, id: column(row, 1)? })
        };
        rows.first().map(place).transpose()
    }
}

fn task(row: &Row) -> Result<ClaimedTask> {
    let expiries: i16 = column(row, 18)?;
    let headers: Option<&str> = column(row, 17)?;
    Ok(ClaimedTask {
        id: TaskId(column(row, 5)?),
        payload: Payload {
            bytes: column::<Vec<u8>>(row, 6)?.into(),
            encoding: codec::encoding(column(row, 7)?)?,
        },
        key: column(row, 8)?,
        group: column(row, 9)?,
        source: column(row, 10)?,
        priority: column(row, 11)?,
        attempt: small(column(row, 12)?),
        claims: small(column(row, 13)?),
        created_at: column::<At>(row, 14)?.0,
        run_at: column::<At>(row, 15)?.0,
        prev_run_at: column::<Option<At>>(row, 16)?.map(|at| at.0),
        headers: match headers {
            None => Headers::new(),
            Some(_) => codec::headers(headers)?,
        },
        concurrent: column::<Option<i32>>(row, 19)?.map(small),
        slot: column::<Option<i32>>(row, 20)?.map(small),
        alone: expiries >= 2,
    })
}
