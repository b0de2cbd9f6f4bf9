//! What operators do by hand.

use gristmill_core::policy::duplicate;
use gristmill_core::{
    Action, Ending, Operation, OperationAnswer, OperationReport, Result, Selection, Start, State,
    TaskFilter, TaskId, Unique,
};

use crate::list::Look;
use crate::read::Lister;
use crate::row::{Place, Row};
use crate::sql::{Sql, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// One bounded step of an operator's action.
    pub(crate) fn operate(&mut self, operation: &Operation) -> Result<OperationReport> {
        let named = operation.named(self.limits)?;
        let (ids, next) = match &operation.selection {
            Selection::Ids(_) => (named.unwrap_or_default(), None),
            Selection::Matching { filter, after } => {
                self.meant(operation.action, filter, *after, operation.step(self.limits))?
            }
        };
        let mut answers = Vec::with_capacity(ids.len());
        for id in ids {
            answers.push((id, self.operate_one(operation, id)?));
        }
        Ok(OperationReport { answers, next })
    }

    /// The tasks an action is meant for, and where the next step goes on.
    fn meant(
        &mut self,
        action: Action,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<(Vec<TaskId>, Option<TaskId>)> {
        if filter.state.is_some_and(|state| !action.applies_to(state)) {
            return Ok((Vec::new(), None));
        }
        let mut narrowed = filter.clone();
        if narrowed.state.is_none() && action != Action::Cancel {
            narrowed.state = Some(State::Failed);
        }
        let look = Look::new(&narrowed, after, false, limit, self.limits.looks);
        let lister = Lister::new(self.db, self.known);
        let (tasks, next) = lister.visit(look, |task| action.applies_to(task.state))?;
        Ok((tasks.into_iter().map(|task| task.id).collect(), next))
    }

    fn operate_one(&mut self, operation: &Operation, id: TaskId) -> Result<OperationAnswer> {
        let Some(mut row) = Row::load(self.db, id.0)? else {
            let kept = self.db.one(Sql::DoneById, bind!(DoneById { id: id.0 }), |_| Ok(()))?;
            return Ok(match kept {
                Some(()) => OperationAnswer::WrongState(State::Done),
                None => OperationAnswer::Gone,
            });
        };
        let state = row.state();
        if !operation.action.applies_to(state) {
            return Ok(OperationAnswer::WrongState(state));
        }
        if let Some(note) = operation.left_note(self.limits) {
            row.note = Some(note.text);
            row.note_by = Some(note.by);
        }
        let queue = self.numbered(row.queue)?;
        match (operation.action, state) {
            (Action::Retry, _) => return self.retry(row, operation.start),
            (Action::RetryFresh, _) => {
                let (id, none) = (row.id, None::<Vec<u8>>);
                let answer = self.retry(row, operation.start)?;
                if answer == OperationAnswer::Moved {
                    self.db
                        .run(Sql::TaskCheckpoint, bind!(TaskCheckpoint { checkpoint: none, id }))?;
                }
                return Ok(answer);
            }
            (Action::Cancel, State::Processing) => {
                self.db.run(
                    Sql::TaskAskCancel,
                    bind!(TaskAskCancel { note: row.note, note_by: row.note_by, id: row.id }),
                )?;
                return Ok(OperationAnswer::CancelRequested);
            }
            (Action::Cancel, _) => {
                self.end_window(&queue, &row)?;
                self.leave(&row)?;
                self.end_as(&queue, row.id, &Ending::Cancelled)?;
                self.db.run(Sql::TaskDelete, bind!(TaskDelete { id: row.id }))?;
                self.delta(row.queue).counters.cancelled += 1;
                self.free_place(&queue, &row, row.place)?;
            }
            (Action::Discard, _) => {
                self.end_window(&queue, &row)?;
                self.end_as(&queue, row.id, &Ending::Discarded)?;
                self.db.run(Sql::TaskDelete, bind!(TaskDelete { id: row.id }))?;
                self.leave_failed(&row)?;
                self.delta(row.queue).counters.discarded += 1;
            }
            (Action::Resolve, _) => {
                row.resolved_by = Some(self.limits.cut_error(&operation.by));
                self.leave_failed(&row)?;
                self.delta(row.queue).counters.resolved += 1;
                self.end_as(&queue, row.id, &Ending::Done { value: None })?;
                self.keep(&queue, row)?;
            }
        }
        Ok(OperationAnswer::Moved)
    }

    /// A failed task takes its key's waiting place, as if put anew.
    fn retry(&mut self, mut row: Row, start: Start) -> Result<OperationAnswer> {
        let queue = self.numbered(row.queue)?;
        let mut blocked = false;
        if let Some(key) = &row.key {
            let places = self.places(&queue, key)?;
            let unique = if row.unique_active { Unique::Active } else { Unique::Pending };
            if let Some(standing) = duplicate::in_the_way(places, unique) {
                return Ok(OperationAnswer::DuplicateOf(standing));
            }
            blocked = places.in_flight.is_some();
        }
        row.place = Place::Waiting;
        row.blocked = blocked;
        row.attempts = 0;
        row.expiries = 0;
        row.started_releases = 0;
        row.prev_run_at = Some(row.run_at);
        row.run_at = start.run_at(self.now).max(self.now);
        row.failed_at = None;
        row.resolved_by = None;
        row.resolved_at = None;
        row.cancel_requested = false;
        row.save(self.db)?;
        self.leave_failed(&row)?;
        self.delta(queue.number).counters.operator_retried += 1;
        if blocked {
            self.block(&queue, row.id)?;
        } else {
            self.enter(&queue, &row.entry())?;
        }
        Ok(OperationAnswer::Moved)
    }
}
