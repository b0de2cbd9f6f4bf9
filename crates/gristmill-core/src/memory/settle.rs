//! Settling and extending: both ask for the task's current token.

use super::state::State;
use crate::policy::outcome::{Back, Next, after_settlement};
use crate::policy::refused_follow_up::{Instead, instead};
use crate::settings::lease_fault;
use crate::settlement::{add_follow_ups, need_turns, put_order};
use crate::{
    AttemptEnd, Became, Ending, ExtendAnswer, Extension, Outcome, Payload, ProgressView, Result,
    SettleAnswer, Settlement, State as TaskState, StoreError, TaskId, Timestamp, Token,
};

impl State {
    /// Records how attempts ended.
    ///
    /// # Errors
    /// As [`Store::settle`](crate::Store::settle).
    pub fn settle(
        &mut self,
        settlements: Vec<Settlement>,
        now: Timestamp,
    ) -> Result<Vec<SettleAnswer>> {
        if settlements.len() > self.limits.settlements {
            return Err(StoreError::invalid(format!(
                "{} settlements in one call and {} are allowed",
                settlements.len(),
                self.limits.settlements
            )));
        }
        let mut settlements: Vec<Settlement> =
            settlements.into_iter().map(|settlement| settlement.admitted(&self.limits)).collect();
        let together = if need_turns(&settlements) { 1 } else { settlements.len().max(1) };
        let mut answers = Vec::with_capacity(settlements.len());
        for settlements in settlements.chunks_mut(together) {
            answers.extend(self.settle_together(settlements, now)?);
        }
        Ok(answers)
    }

    /// Records settlements, and then puts the follow-ups of those that stand.
    fn settle_together(
        &mut self,
        settlements: &mut [Settlement],
        now: Timestamp,
    ) -> Result<Vec<SettleAnswer>> {
        let mut answers = Vec::with_capacity(settlements.len());
        let mut refused = Vec::with_capacity(settlements.len());
        for settlement in &mut *settlements {
            self.fit(settlement);
            let answer = self.settle_one(settlement, now)?;
            refused.push(match &answer {
                SettleAnswer::Recorded { follow_ups, .. } => !follow_ups.is_empty(),
                _ => true,
            });
            answers.push(answer);
        }
        let mut put = Vec::new();
        for (at, nth) in put_order(settlements, |at| refused.get(at) == Some(&false)) {
            let follow_up = settlements.get(at).and_then(|s| s.follow_ups.get(nth));
            if let Some(follow_up) = follow_up {
                put.push((at, nth, self.put_follow_up(follow_up.clone(), now)?));
            }
        }
        add_follow_ups(&mut answers, put);
        Ok(answers)
    }

    /// Records one settlement. Its follow-ups are yet to be put, unless the answer
    /// has their refusals.
    fn settle_one(&mut self, settlement: &Settlement, now: Timestamp) -> Result<SettleAnswer> {
        let Settlement { id, token, outcome, follow_ups, result } = settlement;
        let (id, token) = (*id, *token);
        let Some(row) = self.rows.get(&id.0) else {
            return Ok(match self.done.get(&id.0) {
                Some(row) if row.settled == Some(token) => SettleAnswer::AlreadyRecorded,
                Some(_) => SettleAnswer::LeaseLost,
                None => SettleAnswer::Gone,
            });
        };
        if row.lease != Some(token) {
            if row.settled == Some(token) {
                return Ok(SettleAnswer::AlreadyRecorded);
            }
            let number = row.number;
            self.queue_mut(number)?.counters.lease_lost += 1;
            return Ok(SettleAnswer::LeaseLost);
        }
        let number = row.number;
        if matches!(outcome, Outcome::Done) && follow_ups.is_empty() {
            self.close_one(token, id.0);
            let became = self.finish(id, number, Some(token), result.clone(), now)?;
            return Ok(SettleAnswer::Recorded { became, follow_ups: Vec::new() });
        }
        let refused = self.refuse_follow_ups(follow_ups, now)?;
        let changed = refused
            .as_ref()
            .and_then(|answers| instead(outcome, follow_ups, answers, &self.limits));
        let (outcome, error) = match changed {
            Some(Instead { outcome, error }) => (outcome, Some(error)),
            None => (outcome.clone(), outcome.error()),
        };
        // A task's own settings are few, and a queue's are much to copy for each task.
        let Some((row, queue)) = self.rows.get(&id.0).zip(self.queues.get(&number)) else {
            return Err(StoreError::corrupt(format!("task {id} names queue {number}, unknown")));
        };
        let settings = row.task.settings.over(&queue.queue.settings);
        let (facts, limits) = (row.facts(), &self.limits);
        let next = after_settlement(&facts, &outcome, error.clone(), &settings, limits, now);
        let unstarted = matches!(outcome, Outcome::Release { started: false, .. });
        let returned = (unstarted && matches!(next, Next::Back(_))).then(|| settings.into_owned());
        if let Next::Back(back) = &next {
            let counters = &mut self.queue_mut(number)?.counters;
            if back.released {
                counters.released += 1;
            } else {
                counters.retried += 1;
            }
        }
        if let Some(settings) = returned {
            self.give_token_back(number, &settings, id.0);
        }
        let became = self.end(id, token, next, (outcome.end(), error), result.clone(), now)?;
        Ok(SettleAnswer::Recorded { became, follow_ups: refused.unwrap_or_default() })
    }

    fn end(
        &mut self,
        id: TaskId,
        token: Token,
        next: Next,
        (end, error): (AttemptEnd, Option<String>),
        value: Option<Payload>,
        now: Timestamp,
    ) -> Result<Became> {
        let end = match next {
            Next::Cancelled => AttemptEnd::Cancelled,
            _ => end,
        };
        let error = error.map(|error| self.limits.cut_error(&error));
        self.close_one(token, id.0);
        if let Some(row) = self.rows.get_mut(&id.0) {
            row.end_attempt(&self.limits, end, error.clone(), now);
            row.settled = Some(token);
            if error.is_some() {
                row.task.error = error;
            }
        }
        self.record(id, next, value, now)
    }

    /// A task is done: it leaves the store, or is kept apart where its queue wants that.
    /// With a token its attempt is yet to be written into its history.
    fn finish(
        &mut self,
        id: TaskId,
        number: u32,
        token: Option<Token>,
        value: Option<Payload>,
        now: Timestamp,
    ) -> Result<Became> {
        let mut row = self
            .delete(id.0)
            .ok_or_else(|| StoreError::corrupt(format!("task {id} vanished while settling")))?;
        let queue = self.queue_mut(number)?;
        queue.counters.done += 1;
        queue.minute(now, |m| m.done += 1);
        let stays = queue.queue.settings.keep_done.is_some();
        if let Some(behind) = queue.free_place(&mut row) {
            self.leave(behind.0);
            self.enter(behind.0, now);
        }
        self.end_as(id, number, Ending::Done { value }, now);
        // Nobody reads the history of what does not stay.
        if stays {
            if token.is_some() {
                row.end_attempt(&self.limits, AttemptEnd::Done, None, now);
                row.settled = token;
            }
            self.keep(row, now);
        }
        Ok(Became::Done)
    }

    /// Records where an ended attempt's task goes. Its lease is closed and its
    /// history written.
    pub(super) fn record(
        &mut self,
        id: TaskId,
        next: Next,
        value: Option<Payload>,
        now: Timestamp,
    ) -> Result<Became> {
        let number = self
            .rows
            .get(&id.0)
            .map(|row| row.number)
            .ok_or_else(|| StoreError::corrupt(format!("task {id} vanished while settling")))?;
        match next {
            Next::Done => self.finish(id, number, None, value, now),
            Next::Cancelled => {
                self.queue_mut(number)?.counters.cancelled += 1;
                self.end_window(id);
                self.free_place(id.0, now);
                self.end_as(id, number, Ending::Cancelled, now);
                self.delete(id.0);
                Ok(Became::Cancelled)
            }
            Next::Failed(error) => {
                let error = self.limits.cut_error(&error);
                self.fail(id, error, now)?;
                self.ended |= self.is_wanted(id);
                Ok(Became::Failed)
            }
            Next::Back(back) => {
                self.go_back(id, back, now);
                Ok(Became::Pending { run_at: back.run_at })
            }
        }
    }

    fn fail(&mut self, id: TaskId, error: String, now: Timestamp) -> Result<()> {
        self.end_window(id);
        self.free_place(id.0, now);
        let Some(row) = self.rows.get_mut(&id.0) else {
            return Ok(());
        };
        row.task.state = TaskState::Failed;
        row.task.failed_at = Some(now);
        row.task.error = Some(error);
        let number = row.number;
        let queue = self.queue_mut(number)?;
        queue.counts.failed += 1;
        queue.counters.failed += 1;
        queue.minute(now, |m| m.failed += 1);
        Ok(())
    }

    /// A claimed task goes back: it keeps its key's in-flight place.
    fn go_back(&mut self, id: TaskId, back: Back, now: Timestamp) {
        if let Some(row) = self.rows.get_mut(&id.0) {
            row.task.run_at = back.run_at;
            row.task.prev_run_at = back.prev_run_at;
            row.task.attempts = back.attempts;
            row.task.expiries = back.expiries;
            row.started_releases = back.started_releases;
        }
        self.enter(id.0, now);
    }

    /// Prolongs leases.
    ///
    /// # Errors
    /// As [`Store::extend`](crate::Store::extend).
    pub fn extend(
        &mut self,
        extensions: &[Extension],
        now: Timestamp,
    ) -> Result<Vec<ExtendAnswer>> {
        if let Some(fault) = extensions.iter().find_map(|e| lease_fault(e.lease)) {
            return Err(StoreError::invalid(fault));
        }
        Ok(extensions.iter().map(|extension| self.extend_one(extension, now)).collect())
    }

    fn extend_one(&mut self, extension: &Extension, now: Timestamp) -> ExtendAnswer {
        let token = extension.token;
        let Some(lease) = self.leases.get_mut(&token) else {
            return ExtendAnswer::LeaseLost;
        };
        self.expiring.remove(&(lease.until, token));
        (lease.until, lease.length) = (now.after(extension.lease), extension.lease);
        self.expiring.insert((lease.until, token));
        if let Some(changes) = &mut self.changes {
            changes.extended.push(token);
        }
        for said in &extension.progress {
            let id = said.id.0;
            // What ended under this token meanwhile is nobody's to speak of.
            if self.rows.get(&id).is_some_and(|row| row.lease == Some(token)) {
                let view = ProgressView { progress: said.progress.clone(), at: now };
                self.bytes -= lease.progress.forget(id);
                let room = self.max_bytes.saturating_sub(self.bytes);
                self.bytes += lease.progress.say(id, view, room);
            }
        }
        let mut cancelled = Vec::new();
        for id in &lease.ids {
            let Some(row) = self.rows.derived_mut(id) else {
                continue;
            };
            if row.lease != Some(token) {
                continue;
            }
            if let Some(view) = &mut row.task.lease {
                view.until = lease.until;
            }
            if row.task.cancel_requested {
                cancelled.push(row.task.id);
            }
        }
        ExtendAnswer::Extended { cancelled, lost: Vec::new() }
    }
}
