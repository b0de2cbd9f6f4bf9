//! What operators do by hand.

use super::state::{QueueState, State};
use crate::policy::duplicate;
use crate::{
    Action, Ending, Note, Operation, OperationAnswer, OperationReport, Result, Selection, Start,
    State as TaskState, TaskId, Timestamp,
};

impl State {
    /// One bounded step of an operator's action.
    ///
    /// # Errors
    /// As [`Store::operate`](crate::Store::operate).
    pub fn operate(&mut self, operation: &Operation, now: Timestamp) -> Result<OperationReport> {
        let limit = operation.step(&self.limits);
        let named = operation.named(&self.limits)?;
        let (ids, next) = match &operation.selection {
            Selection::Ids(_) => (named.unwrap_or_default(), None),
            Selection::Matching { filter, after } => {
                let from = after.map_or(i64::MIN, |id| id.0.saturating_add(1));
                let meant: Vec<TaskId> = self
                    .rows
                    .range(from..)
                    .map(|(_, row)| &row.task)
                    .filter(|task| operation.action.applies_to(task.state) && filter.matches(task))
                    .map(|task| task.id)
                    .take(limit)
                    .collect();
                let next = meant.last().copied().filter(|_| meant.len() == limit);
                (meant, next)
            }
        };
        let mut report = OperationReport { answers: Vec::with_capacity(ids.len()), next };
        for id in ids {
            report.answers.push((id, self.operate_one(operation, id, now)?));
        }
        Ok(report)
    }

    fn operate_one(
        &mut self,
        operation: &Operation,
        id: TaskId,
        now: Timestamp,
    ) -> Result<OperationAnswer> {
        let Some(row) = self.rows.get_mut(&id.0) else {
            let kept = self.done.contains_key(&id.0);
            return Ok(if kept {
                OperationAnswer::WrongState(TaskState::Done)
            } else {
                OperationAnswer::Gone
            });
        };
        let state = row.task.state;
        if !operation.action.applies_to(state) {
            return Ok(OperationAnswer::WrongState(state));
        }
        let note = operation.left_note(&self.limits);
        let number = row.number;
        match (operation.action, state) {
            (Action::Retry | Action::RetryFresh, _) => {
                let fresh = operation.action == Action::RetryFresh;
                return self.retry(id, note, (fresh, operation.start), now);
            }
            (Action::Cancel, TaskState::Processing) => {
                row.task.cancel_requested = true;
                row.task.note = note.or(row.task.note.take());
                return Ok(OperationAnswer::CancelRequested);
            }
            (Action::Cancel, _) => {
                self.end_window(id);
                self.leave(id.0);
                self.free_place(id.0, now);
                self.end_as(id, number, Ending::Cancelled, now);
                self.delete(id.0);
                self.queue_mut(number)?.counters.cancelled += 1;
            }
            (Action::Discard, _) => {
                self.end_window(id);
                self.end_as(id, number, Ending::Discarded, now);
                self.delete(id.0);
                let queue = self.queue_mut(number)?;
                queue.counts.failed -= 1;
                queue.counters.discarded += 1;
            }
            (Action::Resolve, _) => {
                row.task.note = note.or(row.task.note.take());
                row.task.resolved_by = Some(self.limits.cut_error(&operation.by));
                let queue = self.queue_mut(number)?;
                queue.counts.failed -= 1;
                queue.counters.resolved += 1;
                self.end_as(id, number, Ending::Done { value: None }, now);
                if let Some(row) = self.delete(id.0) {
                    self.keep(row, now);
                }
            }
        }
        Ok(OperationAnswer::Moved)
    }

    /// A failed task takes its key's waiting place, as if put anew.
    fn retry(
        &mut self,
        id: TaskId,
        note: Option<Note>,
        (fresh, start): (bool, Start),
        now: Timestamp,
    ) -> Result<OperationAnswer> {
        let Some(row) = self.rows.get_mut(&id.0) else {
            return Ok(OperationAnswer::Gone);
        };
        let Some(queue) = self.queues.get_mut(&row.number) else {
            return Ok(OperationAnswer::Gone);
        };
        let task = &mut row.task;
        if let Some(key) = &task.key {
            let places = QueueState::places(queue, key);
            if let Some(standing) = duplicate::in_the_way(places, task.unique) {
                return Ok(OperationAnswer::DuplicateOf(standing));
            }
            queue.places.entry(key.clone()).or_default().waiting = Some(id);
            task.blocked = places.in_flight.is_some();
        }
        queue.counts.failed -= 1;
        queue.counters.operator_retried += 1;
        row.in_flight = false;
        row.started_releases = 0;
        task.attempts = 0;
        task.expiries = 0;
        task.prev_run_at = Some(task.run_at);
        task.run_at = start.run_at(now).max(now);
        task.failed_at = None;
        task.resolved_by = None;
        task.resolved_at = None;
        task.cancel_requested = false;
        task.note = note.or(task.note.take());
        if fresh {
            self.bytes -= row.checkpoint.take().map_or(0, |mark| mark.bytes);
            row.task.checkpoint = None;
        }
        self.enter(id.0, now);
        Ok(OperationAnswer::Moved)
    }
}
