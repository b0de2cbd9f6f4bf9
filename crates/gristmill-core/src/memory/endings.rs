//! What came of tasks: kept for who waits, and for as long as their queue says.

use super::state::State;
use crate::policy::ending::{WANTED_LOOKED, kept, longest};
use crate::{
    Ending, Outcome, PutAnswer, Result, Settlement, State as TaskState, StoreError, TaskId,
    Timestamp,
};

/// What an ending takes in memory beside its value, its places in the tables included.
const ENDING_BYTES: usize = 200;

/// An ending as it is written down; one that is open says that the task's end is
/// wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingRecord {
    /// The queue's number.
    pub number: u32,
    /// What came of the task.
    pub ending: Ending,
    /// When it is forgotten, or, while it is open, looked at again.
    pub until: Timestamp,
}

impl EndingRecord {
    fn bytes(&self) -> usize {
        self.ending.bytes() + ENDING_BYTES
    }
}

impl State {
    /// What came of tasks; one answer each.
    ///
    /// # Errors
    /// As [`Store::endings`](crate::Store::endings).
    pub fn endings(&self, ids: &[TaskId], now: Timestamp) -> Result<Vec<Ending>> {
        if ids.len() > self.limits.page {
            return Err(StoreError::invalid(format!(
                "{} ids in one call and {} are allowed",
                ids.len(),
                self.limits.page
            )));
        }
        Ok(ids.iter().map(|id| self.ending(*id, now)).collect())
    }

    fn ending(&self, id: TaskId, now: Timestamp) -> Ending {
        let record = self.endings.get(&id.0);
        if let Some(row) = self.rows.get(&id.0) {
            let wanted = record.is_some();
            return match (row.task.state, &row.task.error) {
                (TaskState::Failed, error) => {
                    Ending::Failed { error: error.clone().unwrap_or_default() }
                }
                _ => Ending::Open { wanted },
            };
        }
        let known = record.filter(|record| record.until > now && !record.ending.is_open());
        match known {
            Some(record) => record.ending.clone(),
            None if self.done.contains_key(&id.0) => Ending::Done { value: None },
            None => Ending::NotKnown,
        }
    }

    /// The end of a standing task is wanted.
    pub(super) fn want(&mut self, id: TaskId, now: Timestamp) {
        let Some(number) = self.rows.get(&id.0).map(|row| row.number) else {
            return;
        };
        if !self.endings.contains_key(&id.0) {
            let until = now.after(WANTED_LOOKED);
            let ending = Ending::Open { wanted: true };
            self.set_ending(id, Some(EndingRecord { number, ending, until }));
        }
    }

    /// The same of what a put answered, where it says so.
    pub(super) fn want_those(&mut self, wanted: &[bool], answers: &[PutAnswer], now: Timestamp) {
        for (_, answer) in wanted.iter().zip(answers).filter(|(wanted, _)| **wanted) {
            if let Some(id) = answer.id() {
                self.want(id, now);
            }
        }
    }

    pub(super) fn is_wanted(&self, id: TaskId) -> bool {
        self.endings.get(&id.0).is_some_and(|record| record.ending.is_open())
    }

    /// A task of this queue leaves the store, and this came of it.
    pub(super) fn end_as(&mut self, id: TaskId, number: u32, ending: Ending, now: Timestamp) {
        let wanted = self.is_wanted(id);
        let settings = self.queues.get(&number).map(|queue| &queue.queue.settings);
        let span = settings.and_then(|settings| kept(settings, wanted, &ending));
        if let Some(span) = span {
            self.set_ending(id, Some(EndingRecord { number, ending, until: now.after(span) }));
        }
        self.ended |= wanted;
    }

    /// Takes from a settlement what there is no room for. Puts are kept out long before;
    /// but a value that nobody bounded would grow the store by what is done, and one that
    /// is dropped would be missed by who waits for it. So its task comes back, when the
    /// time of others has made room.
    pub(super) fn fit(&self, settlement: &mut Settlement) {
        let Settlement { id, token, outcome: Outcome::Done, result: Some(value), .. } = settlement
        else {
            return;
        };
        let bytes = value.bytes.len();
        let row = self.rows.get(&id.0).filter(|row| row.lease == Some(*token));
        let settings = row.and_then(|row| self.queues.get(&row.number));
        let ending = Ending::Done { value: Some(value.clone()) };
        let is_kept = settings.is_some_and(|queue| {
            kept(&queue.queue.settings, self.is_wanted(*id), &ending).is_some()
        });
        if is_kept && self.results + bytes > self.max_results {
            settlement.outcome = Outcome::Error(format!(
                "there is no room for its result of {bytes} bytes: {} of {} are taken by others",
                self.results, self.max_results
            ));
            settlement.result = None;
            settlement.follow_ups.clear();
        }
    }

    fn set_ending(&mut self, id: TaskId, record: Option<EndingRecord>) {
        let until = record.as_ref().map(|record| record.until);
        let before = match record {
            Some(record) => {
                self.bytes += record.bytes();
                self.results += record.ending.bytes();
                self.endings.insert(id.0, record)
            }
            None => self.endings.remove(&id.0),
        };
        if let Some(before) = before {
            self.bytes -= before.bytes();
            self.results -= before.ending.bytes();
            self.endings_due.remove(&(before.until, id.0));
        }
        if let Some(until) = until {
            self.endings_due.insert((until, id.0));
        }
    }

    /// Forgets endings past their time. Those that are open belong to a task that
    /// stands, or that went without the store's being told.
    pub(super) fn forget_endings(&mut self, now: Timestamp) -> u64 {
        let due: Vec<i64> = self
            .endings_due
            .iter()
            .take_while(|(until, _)| *until <= now)
            .map(|(_, id)| *id)
            .take(self.limits.page)
            .collect();
        let mut forgotten = 0;
        for id in due {
            let open = self.rows.contains_key(&id);
            let record = self.endings.get(&id).filter(|_| open).cloned();
            forgotten += u64::from(record.is_none());
            let again = now.after(WANTED_LOOKED);
            let record = record.map(|record| EndingRecord { until: again, ..record });
            self.set_ending(TaskId(id), record);
        }
        forgotten
    }

    /// After a jump back of the wall clock: nothing is kept longer than its queue says.
    pub(super) fn clamp_endings(&mut self, now: Timestamp) {
        let ahead: Vec<(i64, EndingRecord)> = (self.endings.iter())
            .filter_map(|(id, record)| {
                let settings = &self.queues.get(&record.number)?.queue.settings;
                let until = now.after(longest(settings));
                let record = EndingRecord { until, ..record.clone() };
                (self.endings.get(id)?.until > until).then_some((*id, record))
            })
            .collect();
        for (id, record) in ahead {
            self.set_ending(TaskId(id), Some(record));
        }
    }

    /// Whether a task has ended that somebody waits for, since the last call.
    pub fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    /// What is kept of a task's end.
    #[must_use]
    pub fn ending_record(&self, id: TaskId) -> Option<&EndingRecord> {
        self.endings.get(&id.0)
    }

    /// All that is kept of tasks' ends, by task.
    pub fn all_endings(&self) -> impl Iterator<Item = (TaskId, &EndingRecord)> {
        self.endings.iter().map(|(id, record)| (TaskId(*id), record))
    }

    /// Sets or forgets what is kept of a task's end.
    pub fn restore_ending(&mut self, id: TaskId, record: Option<EndingRecord>) {
        if record.as_ref().is_some_and(|record| !record.ending.is_open()) {
            self.ended = true;
        }
        self.set_ending(id, record);
    }
}
