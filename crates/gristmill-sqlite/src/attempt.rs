//! The end of an attempt: its line in the history, and where the task goes.

use gristmill_core::policy::outcome::{Back, Next};
use gristmill_core::{Attempt, AttemptEnd, Became, Ending, Payload, Queue, Result};

use crate::codec;
use crate::lease::Lease;
use crate::row::{Place, Row};
use crate::sql::{Sql, bind};
use crate::write::Write;

/// How an attempt ended.
pub(crate) struct Ended {
    pub(crate) end: AttemptEnd,
    pub(crate) error: Option<String>,
    /// What its handler returned.
    pub(crate) value: Option<Payload>,
}

impl Write<'_, '_> {
    /// Records where an ended attempt's task goes. The caller takes it out of
    /// its lease.
    pub(crate) fn end_attempt(
        &mut self,
        queue: &Queue,
        mut row: Row,
        lease: &Lease,
        next: Next,
        Ended { end, error, value }: Ended,
    ) -> Result<Became> {
        let facts = row.facts();
        row.attempts = facts.attempts;
        row.claims = facts.claims;
        row.claimed_at = Some(lease.claimed_at);
        let error = error.map(|error| self.limits.cut_error(&error));
        self.write_history(&mut row, lease, end, error.clone())?;
        if error.is_some() {
            row.error = error;
        }
        self.delta(queue.number).processing -= 1;
        if queue.settings.ends_make_room() {
            // Another task may be claimable now.
            self.wake(queue);
        }
        match next {
            Next::Done => {
                self.end_as(queue, row.id, &Ending::Done { value })?;
                self.done(queue, row)
            }
            Next::Cancelled => {
                self.delta(queue.number).counters.cancelled += 1;
                self.end_window(queue, &row)?;
                self.end_as(queue, row.id, &Ending::Cancelled)?;
                self.db.run(Sql::TaskDelete, bind!(TaskDelete { id: row.id }))?;
                self.free_place(queue, &row, row.place)?;
                Ok(Became::Cancelled)
            }
            Next::Failed(error) => {
                self.end_window(queue, &row)?;
                self.failed(queue, row, &error)
            }
            Next::Back(back) => self.go_back(queue, row, back),
        }
    }

    fn write_history(
        &self,
        row: &mut Row,
        lease: &Lease,
        end: AttemptEnd,
        error: Option<String>,
    ) -> Result<()> {
        let known = codec::history(row.history.as_deref());
        if let Some(why) = known.fault {
            // For reading only, and it must not keep the task from ending.
            let history = row.history.as_deref().unwrap_or_default();
            tracing::warn!(id = row.id, %why, history, "what cannot be read is written over");
        }
        let mut history = known.value;
        let over = (history.len() + 1).saturating_sub(self.limits.history);
        history.drain(..over.min(history.len()));
        history.push(Attempt {
            worker: codec::worker_id(&lease.worker),
            // Not after its end, also when the clock went back meanwhile.
            claimed_at: lease.claimed_at.min(self.now),
            ended_at: self.now,
            end,
            error,
        });
        row.history = Some(codec::history_text(&history)?);
        Ok(())
    }

    fn done(&mut self, queue: &Queue, row: Row) -> Result<Became> {
        self.delta(queue.number).counters.done += 1;
        let held = row.place;
        let row = self.keep(queue, row)?;
        self.free_place(queue, &row, held)?;
        Ok(Became::Done)
    }

    /// A task leaves the list of failed ones.
    pub(crate) fn leave_failed(&mut self, row: &Row) -> Result<()> {
        self.db.run(Sql::FailedRemove, bind!(FailedRemove { id: row.id }))?;
        self.delta(row.queue).failed -= 1;
        Ok(())
    }

    /// Deletes a finished task, keeping a copy for reading if its queue wants
    /// that.
    pub(crate) fn keep(&mut self, queue: &Queue, mut row: Row) -> Result<Row> {
        if queue.settings.keep_done.is_some() {
            row.place = Place::Done;
            row.blocked = false;
            row.cancel_requested = false;
            row.resolved_at = Some(self.now);
            row.save(self.db)?;
            self.db.run(Sql::TaskKeep, bind!(TaskKeep { id: row.id }))?;
            self.delta(queue.number).done_kept += 1;
        }
        self.db.run(Sql::TaskDelete, bind!(TaskDelete { id: row.id }))?;
        Ok(row)
    }

    fn failed(&mut self, queue: &Queue, mut row: Row, error: &str) -> Result<Became> {
        // What came of it is told by the task itself.
        self.ended |= self.is_wanted(row.id)?;
        let held = row.place;
        row.place = Place::Failed;
        row.failed_at = Some(self.now);
        row.error = Some(self.limits.cut_error(error));
        row.cancel_requested = false;
        row.save(self.db)?;
        let at = self.now.as_micros();
        self.db.run(
            Sql::FailedAdd,
            bind!(FailedAdd { id: row.id, queue: row.queue, key: row.key, failed_at: at }),
        )?;
        let delta = self.delta(queue.number);
        delta.failed += 1;
        delta.counters.failed += 1;
        self.free_place(queue, &row, held)?;
        Ok(Became::Failed)
    }

    /// A claimed task goes back: it keeps its key's in-flight place.
    fn go_back(&mut self, queue: &Queue, mut row: Row, back: Back) -> Result<Became> {
        row.place = Place::InFlight;
        row.run_at = back.run_at;
        row.prev_run_at = back.prev_run_at;
        row.attempts = back.attempts;
        row.expiries = back.expiries;
        row.started_releases = back.started_releases;
        row.save(self.db)?;
        self.enter(queue, &row.entry())?;
        Ok(Became::Pending { run_at: back.run_at })
    }
}
