//! After a jump back of the server's clock: what lies ahead of it only because it
//! was wrong. Done by the next sweep or reclaim of a process that noticed, in
//! bounded steps; where nobody noticed it costs nothing.

use std::sync::{MutexGuard, PoisonError};

use gristmill_core::{Clock as _, Result};

use crate::answer::column;
use crate::codec::count;
use crate::errors::corrupt;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::sweep::LONGEST;
use crate::wire::At;

/// Leases cut, and tasks looked at, in one step.
const STEP: i32 = 5_000;

/// How far this process came with bringing back what a clock that was ahead left.
#[derive(Debug, Default)]
pub(crate) struct Back {
    /// How many jumps back it noticed: another one begins anew.
    jumps: u64,
    /// Where the look for tasks that are not due any more goes on; nothing when
    /// all is done.
    from: Option<Place>,
}

/// A place in the claim order of all queues; nothing of it: the begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    queue: Option<i32>,
    level: Option<i16>,
    run_at: Option<At>,
    id: Option<i64>,
}

impl Inner {
    fn back(&self) -> MutexGuard<'_, Back> {
        // Plain numbers are valid whatever a panicking holder did.
        self.back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock went back. Hints name places and instants that it is not at any
    /// more: by them, leases that run out would be passed over.
    pub(crate) fn note_went_back(&self) {
        tracing::warn!("the server's clock went back: leases and schedules are brought back");
        let mut back = self.back();
        *back = Back { jumps: back.jumps + 1, from: Some(Place::default()) };
        self.hints.forget_times();
    }

    /// Whether the clock went back, and not all of it was dealt with yet.
    pub(crate) fn is_back(&self) -> bool {
        self.back().from.is_some()
    }

    /// Brings back what a clock that was ahead left: no lease lasts longer than
    /// its length, schedules fire again, tasks that are not due any more count as
    /// delayed, and the rest of what was said in the future is said now. What takes
    /// too long is the next call's.
    pub(crate) async fn bring_back(&self) -> Result<()> {
        self.held();
        let begun = self.steady.monotonic();
        let (jumps, mut from) = {
            let back = self.back();
            let Some(from) = back.from else { return Ok(()) };
            (back.jumps, from)
        };
        if from == Place::default() {
            while self.cut_leases().await? == u64::from(STEP.unsigned_abs()) {}
            self.clamp_schedules().await?;
            // Minutes that were counted ahead and wait to be added up go along.
            self.fold().await?;
            self.pool.write(Sql::CutAhead, &[&self.now()]).await?;
        }
        loop {
            let next = self.count_undue(from).await?;
            {
                let mut back = self.back();
                if back.jumps != jumps {
                    return Ok(());
                }
                back.from = next;
            }
            let Some(next) = next else { return Ok(()) };
            if self.steady.monotonic().saturating_sub(begun) >= LONGEST {
                return Ok(());
            }
            from = next;
        }
    }

    async fn cut_leases(&self) -> Result<u64> {
        let rows = self.pool.write(Sql::CutLeases, &[&STEP, &self.now()]).await?;
        let row = rows.first().ok_or_else(|| corrupt("a cut of leases", "it has no answer"))?;
        Ok(count(column(row, at!(CutLeases.cut_leases))?))
    }

    /// Counts one step of tasks; where to go on, if there are more.
    async fn count_undue(&self, from: Place) -> Result<Option<Place>> {
        let Place { queue, level, run_at, id } = from;
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&queue, &level, &run_at, &id, &STEP, &self.now()];
        let rows = self.pool.write(Sql::CountUndue, &values).await?;
        let row = rows.first().ok_or_else(|| corrupt("a count", "it has no answer"))?;
        let next = Place {
            queue: column(row, at!(CountUndue.queue))?,
            level: column(row, at!(CountUndue.level))?,
            run_at: column(row, at!(CountUndue.run_at))?,
            id: column(row, at!(CountUndue.id))?,
        };
        Ok(next.queue.is_some().then_some(next))
    }
}
