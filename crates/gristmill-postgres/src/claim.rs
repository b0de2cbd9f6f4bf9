//! Claiming: the request, the hint it begins at, and the tasks it brings.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::claim::damaged;
use gristmill_core::policy::reclaim_guard::spared;
use gristmill_core::{
    Claim, ClaimRequest, ClaimedTask, Clock as _, Headers, Kept, Outcome, Payload, QueueName,
    Result, Settings, Settlement, TaskId, TaskSettings,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::answer::{Answer as _, column};
use crate::codec::{self, from_span, small, span};
use crate::errors::corrupt;
use crate::hint::{Begin, Ended, Hint};
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::sweep::failed_by_expiry;
use crate::wire::{At, Uuid};

/// A task that stood there for so long, and could have begun, is one that perhaps
/// nobody told of.
const UNTOLD: Duration = Duration::from_secs(1);
/// A claim that found nothing without a look from the front is made again after
/// this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Inner {
    /// Takes due tasks under a new lease.
    pub(crate) async fn claim(self: &Arc<Self>, request: ClaimRequest) -> Result<Claim> {
        // The queue's own lease is checked where it is declared.
        request.lease_on(&Settings::default())?;
        // Before the hints, which a jump back makes forgotten.
        let held = self.held();
        let begun = self.steady.monotonic();
        let Begin { hints, sweep, clean } = match request.source {
            None => self.hints.begin(&request.queue, begun),
            Some(_) => Begin::front(),
        };
        let hints = (!hints.is_empty()).then(|| Places::of(&hints));
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
                    &hints.as_ref().map(|hints| &hints.levels),
                    &hints.as_ref().map(|hints| &hints.run_ats),
                    &hints.as_ref().map(|hints| &hints.ids),
                    &sweep,
                    &held,
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
        let now = column::<At>(first, at!(Claim.now))?.0;
        self.observe(now, begun);
        let lease = from_span(column(first, at!(Claim.lease))?);
        let mut claim = request.nothing_yet(lease, column(first, at!(Claim.paused))?);
        claim.next_due =
            column::<Option<At>>(first, at!(Claim.next_due))?.map(|at| at.0.since(now));
        let longest = column::<Option<i64>>(first, at!(Claim.held_back))?
            .map(|lease| spared(from_span(lease)));
        claim.held_back =
            longest.zip(held).map(|(longest, held)| longest.saturating_sub(from_span(held)));
        let swept = column::<Option<i64>>(first, at!(Claim.swept))?.map(from_span);
        claim.failed = failed_by_expiry(first, at!(Claim.failed))?;
        // The first row may be there for what is told of the claim itself.
        let taken = if column::<Option<i64>>(first, at!(Claim.id))?.is_some() { 0 } else { 1 };
        if let Some(rows) = rows.get(taken..) {
            let mut bad = Vec::new();
            for row in rows {
                match task(row) {
                    Ok(task) => claim.tasks.push(task),
                    Err(why) => bad.push((TaskId(column(row, at!(Claim.id))?), damaged(&why))),
                }
            }
            // The hint's part comes before the front's.
            claim.tasks.sort_by_key(|task| (task.priority, task.run_at, task.id));
            if !bad.is_empty() {
                self.set_aside(&mut claim, bad).await;
            }
        }
        // Somebody put it a while ago, and it could have begun.
        let untold = |task: &ClaimedTask| {
            task.attempt == 1
                && task.run_at == task.created_at
                && now.since(task.created_at) >= UNTOLD
        };
        if claim.tasks.iter().any(untold) {
            self.ear.found_untold();
        }
        let clean: bool = column(first, at!(Claim.clean))?;
        if !clean && !claim.tasks.is_empty() {
            // What it took back and left is for others as well.
            self.notifier.tell(&claim.queue);
            self.ear.wake.wake(std::slice::from_ref(&claim.queue));
        }
        if claim.tasks.is_empty() && hints.is_some() && !sweep {
            // Nobody has looked from the front, where that takes long.
            claim.next_due = Some(claim.next_due.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN));
        }
        if request.source.is_some() && !clean {
            // What it took from ended leases may stand in front of any hint.
            self.hints.forget(&claim.queue);
        }
        if request.source.is_none() {
            let front = hints.is_none() || !clean;
            let (hints, clean) = (last_of_levels(&claim.tasks), clean.then_some(now));
            let ended = Ended { hints, front, swept, clean };
            if let Some(ends) = self.hints.ended(&claim.queue, ended, begun) {
                let (inner, queue) = (self.clone(), claim.queue.clone());
                self.pool.driver.spawn(async move { inner.look_behind(&queue, ends).await });
            }
        }
        Ok(claim)
    }

    /// What was taken and cannot be read fails at once, where people look; its
    /// neighbours are handed out. Where that fails it stays under the lease and
    /// is met again when that has run out.
    async fn set_aside(&self, claim: &mut Claim, bad: Vec<(TaskId, String)>) {
        if claim.tasks.is_empty() {
            claim.next_due = Some(Duration::ZERO);
        }
        // One by one: of several, one that the database cannot even move must
        // not keep the others.
        for (id, why) in bad {
            let fail = Settlement::new(id, claim.token, Outcome::Fail(why.clone()));
            match self.settle(vec![fail]).await {
                Ok(_) => {
                    tracing::error!(%id, %why, "a task cannot be read; it has failed");
                    claim.failed.push(id);
                }
                Err(error) => {
                    tracing::error!(%id, %why, error = %error.whole(), "a task cannot be read, and stays");
                }
            }
        }
    }

    /// Looks for tasks that claims have passed by, and sends them there.
    async fn look_behind(&self, queue: &QueueName, ends: Vec<Hint>) {
        let begun = self.steady.monotonic();
        let found = self.behind(queue, &ends).await;
        let took = self.steady.monotonic().saturating_sub(begun);
        let places = found.unwrap_or_else(|error| {
            tracing::debug!(%queue, error = %error.whole(), "nobody looked behind the last claims");
            Vec::new()
        });
        self.hints.found(queue, &places, took, begun);
        if !places.is_empty() {
            self.ear.wake.wake(std::slice::from_ref(queue));
        }
    }

    async fn behind(&self, queue: &QueueName, ends: &[Hint]) -> Result<Vec<Hint>> {
        let Places { levels, run_ats, ids } = Places::of(ends);
        let values: [&(dyn ToSql + Sync); 5] =
            [&queue.as_str(), &levels, &run_ats, &ids, &self.now()];
        let rows = self.pool.read(Sql::Behind, &values).await?;
        let place = |row| {
            let (level, run_at) =
                (column(row, at!(Behind.level))?, column::<At>(row, at!(Behind.run_at))?.0);
            Ok(Hint { level, run_at, id: column(row, at!(Behind.id))? })
        };
        rows.iter().map(place).collect()
    }
}

/// Hints as the arrays that the server takes.
struct Places {
    levels: Vec<i16>,
    run_ats: Vec<At>,
    ids: Vec<i64>,
}

impl Places {
    fn of(hints: &[Hint]) -> Self {
        Places {
            levels: hints.iter().map(|hint| hint.level).collect(),
            run_ats: hints.iter().map(|hint| At(hint.run_at)).collect(),
            ids: hints.iter().map(|hint| hint.id).collect(),
        }
    }
}

/// Where the claim ended in each level, the most urgent first. The tasks are in
/// that order.
fn last_of_levels(tasks: &[ClaimedTask]) -> Vec<Hint> {
    let ends = tasks.chunk_by(|one, next| one.priority == next.priority);
    let place =
        |task: &ClaimedTask| Hint { level: task.priority, run_at: task.run_at, id: task.id.0 };
    ends.filter_map(|level| level.last().map(place)).collect()
}

/// A task of the claim, or what is wrong with it, as a part of a sentence.
fn task(row: &Row) -> Result<ClaimedTask, String> {
    let whole = |what: &'static str| move |why: String| format!("its {what} cannot be read: {why}");
    let encoding = codec::encoding(row.value(at!(Claim.encoding)).map_err(whole("encoding"))?);
    let headers = codec::headers(row.value(at!(Claim.headers)).map_err(whole("headers"))?);
    let own = codec::task_settings(row.value(at!(Claim.settings)).map_err(whole("settings"))?);
    let faults = [encoding.fault, headers.fault, own.fault];
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    let payload: Vec<u8> = row.value(at!(Claim.payload)).map_err(whole("payload"))?;
    let payload = Payload { bytes: payload.into(), encoding: encoding.value };
    rest(row, payload, headers.value, own.value).map_err(|error| error.whole())
}

/// What no one but the store itself writes.
fn rest(
    row: &Row,
    payload: Payload,
    headers: Headers,
    settings: TaskSettings,
) -> Result<ClaimedTask> {
    let expiries: i16 = column(row, at!(Claim.expiries))?;
    Ok(ClaimedTask {
        id: TaskId(column(row, at!(Claim.id))?),
        payload,
        key: column(row, at!(Claim.key))?,
        group: column(row, at!(Claim.grp))?,
        source: column(row, at!(Claim.source))?,
        priority: column(row, at!(Claim.priority))?,
        attempt: small(column(row, at!(Claim.attempt))?),
        claims: small(column(row, at!(Claim.claims))?),
        created_at: column::<At>(row, at!(Claim.created_at))?.0,
        run_at: column::<At>(row, at!(Claim.run_at))?.0,
        prev_run_at: column::<Option<At>>(row, at!(Claim.prev_run_at))?.map(|at| at.0),
        headers,
        settings,
        checkpoint: column::<Option<Vec<u8>>>(row, at!(Claim.checkpoint))?.map(Kept::from),
        concurrent: column::<Option<i32>>(row, at!(Claim.concurrent))?.map(small),
        slot: column::<Option<i32>>(row, at!(Claim.slot))?.map(small),
        alone: ClaimedTask::runs_alone(u32::try_from(expiries).unwrap_or_default()),
    })
}
