//! Settling and extending: both ask for the task's current token.

use gristmill_core::policy::outcome::{Next, after_settlement};
use gristmill_core::policy::refused_follow_up::{Instead, instead};
use gristmill_core::settings::lease_fault;
use gristmill_core::settlement::{add_follow_ups, need_turns, put_order};
use gristmill_core::{
    AttemptEnd, ExtendAnswer, Extension, Outcome, Result, SettleAnswer, Settlement, StoreError,
    TaskId, Token,
};

use crate::attempt::Ended;
use crate::lease::Lease;
use crate::row::Row;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// Records how attempts ended; one answer each.
    pub(crate) fn settle(&mut self, settlements: &[Settlement]) -> Result<Vec<SettleAnswer>> {
        if settlements.len() > self.limits.settlements {
            return Err(StoreError::invalid(format!(
                "{} settlements in one call and {} are allowed",
                settlements.len(),
                self.limits.settlements
            )));
        }
        let settlements: Vec<Settlement> =
            settlements.iter().map(|one| one.clone().admitted(self.limits)).collect();
        let settlements = settlements.as_slice();
        let together = if need_turns(settlements) { 1 } else { settlements.len().max(1) };
        let mut answers = Vec::with_capacity(settlements.len());
        for settlements in settlements.chunks(together) {
            answers.extend(self.settle_together(settlements)?);
        }
        Ok(answers)
    }

    /// Records settlements, and then puts the follow-ups of those that stand.
    fn settle_together(&mut self, settlements: &[Settlement]) -> Result<Vec<SettleAnswer>> {
        let mut answers = self.record(settlements)?;
        let refused: Vec<bool> = answers
            .iter()
            .map(|answer| match answer {
                SettleAnswer::Recorded { follow_ups, .. } => !follow_ups.is_empty(),
                _ => true,
            })
            .collect();
        let mut put = Vec::new();
        for (at, nth) in put_order(settlements, |at| refused.get(at) == Some(&false)) {
            let follow_up = settlements.get(at).and_then(|s| s.follow_ups.get(nth));
            if let Some(follow_up) = follow_up {
                put.push((at, nth, self.put_follow_up(follow_up)?));
            }
        }
        add_follow_ups(&mut answers, put);
        Ok(answers)
    }

    /// Records settlements; the answers have only refused follow-ups.
    fn record(&mut self, settlements: &[Settlement]) -> Result<Vec<SettleAnswer>> {
        let mut answers = Vec::with_capacity(settlements.len());
        for of_token in settlements.chunk_by(|a, b| a.token == b.token) {
            let Some(first) = of_token.first() else {
                continue;
            };
            let mut lease = Lease::load(self.db, first.token)?;
            let open = lease.as_ref().map_or(0, |lease| lease.ids.len());
            for run in of_token.chunk_by(|a, b| is_plain_done(a) && is_plain_done(b)) {
                if run.first().is_some_and(is_plain_done)
                    && let Some(lease) = &mut lease
                    && self.settle_done(run, lease)?
                {
                    answers.extend(run.iter().map(|_| SettleAnswer::Recorded {
                        became: gristmill_core::Became::Done,
                        follow_ups: Vec::new(),
                    }));
                    continue;
                }
                for settlement in run {
                    answers.push(self.settle_one(settlement, lease.as_mut())?);
                }
            }
            if let Some(lease) = lease
                && lease.ids.len() != open
            {
                lease.save(self.db)?;
            }
        }
        Ok(answers)
    }

    fn settle_one(
        &mut self,
        settlement: &Settlement,
        lease: Option<&mut Lease>,
    ) -> Result<SettleAnswer> {
        let id = settlement.id.0;
        let Some(mut row) = Row::load(self.db, id)? else {
            return self.settled_before(id, settlement.token);
        };
        let at = lease.as_ref().and_then(|lease| lease.ids.iter().position(|open| *open == id));
        let (Some(lease), Some(at)) = (lease, at) else {
            if row.settled_token.as_deref() == Some(settlement.token.to_bytes().as_slice()) {
                return Ok(SettleAnswer::AlreadyRecorded);
            }
            self.delta(row.queue).counters.lease_lost += 1;
            return Ok(SettleAnswer::LeaseLost);
        };
        lease.ids.remove(at);
        let queue = self.numbered(row.queue)?;
        let Settlement { outcome, follow_ups, .. } = settlement;
        let refused = self.refuse_follow_ups(follow_ups)?;
        let changed =
            refused.as_ref().and_then(|answers| instead(outcome, follow_ups, answers, self.limits));
        let (end, error) = match &changed {
            Some(Instead { outcome, error }) => (outcome, Some(error.clone())),
            None => (outcome, outcome.error()),
        };
        let (facts, own) = (row.facts(), row.own());
        let settings = own.over(&queue.settings);
        let next = after_settlement(&facts, end, error.clone(), &settings, self.limits, self.now);
        if let Next::Back(back) = &next {
            let counters = &mut self.delta(queue.number).counters;
            if back.released {
                counters.released += 1;
            } else {
                counters.retried += 1;
            }
        }
        let end = match next {
            Next::Cancelled => AttemptEnd::Cancelled,
            _ => end.end(),
        };
        let unstarted = matches!(outcome, Outcome::Release { started: false, .. });
        if unstarted && matches!(next, Next::Back(_)) {
            self.give_token_back(&queue, row.group.as_deref())?;
        }
        row.settled_token = Some(settlement.token.to_bytes().to_vec());
        let value = settlement.result.clone();
        let became = self.end_attempt(&queue, row, lease, next, Ended { end, error, value })?;
        Ok(SettleAnswer::Recorded { became, follow_ups: refused.unwrap_or_default() })
    }

    /// The answer when no such task stands.
    fn settled_before(&self, id: i64, token: Token) -> Result<SettleAnswer> {
        let kept = self.db.one(Sql::DoneById, bind!(DoneById { id }), Row::read)?;
        Ok(match kept {
            None => SettleAnswer::Gone,
            Some(row) if row.settled_token.as_deref() == Some(token.to_bytes().as_slice()) => {
                SettleAnswer::AlreadyRecorded
            }
            Some(_) => SettleAnswer::LeaseLost,
        })
    }

    /// Records many plain successes of one claim at once: rows with
    /// neighbouring numbers go in one statement. Returns whether it could;
    /// otherwise nothing was changed.
    fn settle_done(&mut self, run: &[Settlement], lease: &mut Lease) -> Result<bool> {
        let queue = self.numbered(lease.queue)?;
        if queue.settings.keeps_results() {
            return Ok(false);
        }
        let mut ids: Vec<i64> = run.iter().map(|settlement| settlement.id.0).collect();
        ids.sort_unstable();
        let mut open = lease.ids.clone();
        open.sort_unstable();
        // Each must be open, and be settled once.
        if ids.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
            || !ids.iter().all(|id| open.binary_search(id).is_ok())
        {
            return Ok(false);
        }
        if self.any_wanted(&ids)? {
            return Ok(false);
        }
        let mut keys: Vec<String> = Vec::new();
        let mut runs: Vec<(i64, i64)> = Vec::new();
        for neighbours in ids.chunk_by(|a, b| *a + 1 == *b) {
            let [first, ..] = neighbours else { continue };
            let [.., last] = neighbours else { continue };
            let mut found = 0;
            self.db.with(Sql::TaskKeysRun, |statement| {
                let mut rows = statement.query(bind!(TaskKeysRun { first, last }))?;
                while let Some(row) = rows.next()? {
                    found += 1;
                    if let Some(key) = row.get(at!(TaskKeysRun.key))? {
                        keys.push(key);
                    }
                }
                Ok(())
            })?;
            if found != neighbours.len() {
                return Ok(false);
            }
            runs.push((*first, *last));
        }
        for (first, last) in runs {
            self.db.run(Sql::TaskDeleteRun, bind!(TaskDeleteRun { first, last }))?;
        }
        if ids.len() == open.len() {
            lease.ids.clear();
        } else {
            lease.ids.retain(|id| ids.binary_search(id).is_err());
        }
        let delta = self.delta(queue.number);
        delta.processing -= i64::try_from(ids.len()).unwrap_or(i64::MAX);
        delta.counters.done += ids.len() as u64;
        for key in keys {
            self.unblock(&queue, &key)?;
        }
        if queue.settings.ends_make_room() {
            self.wake(&queue);
        }
        Ok(true)
    }

    /// Prolongs leases; one answer each.
    pub(crate) fn extend(&mut self, extensions: &[Extension]) -> Result<Vec<ExtendAnswer>> {
        if let Some(fault) = extensions.iter().find_map(|e| lease_fault(e.lease)) {
            return Err(StoreError::invalid(fault));
        }
        extensions.iter().map(|extension| self.extend_one(extension)).collect()
    }

    fn extend_one(&self, extension: &Extension) -> Result<ExtendAnswer> {
        let Some(mut lease) = Lease::load(self.db, extension.token)? else {
            return Ok(ExtendAnswer::LeaseLost);
        };
        let until = self.now.after(extension.lease).as_micros();
        let length = crate::codec::span(extension.lease);
        self.db
            .run(Sql::LeaseProlong, bind!(LeaseProlong { until, length, number: lease.number }))?;
        if !extension.progress.is_empty() {
            lease.tell(self.db, &extension.progress, self.now)?;
        }
        let (mut cancelled, mut lost) = (Vec::new(), Vec::new());
        for id in &lease.ids {
            match self.db.one(Sql::TaskCancelAsked, bind!(TaskCancelAsked { id }), |row| {
                row.get(at!(TaskCancelAsked.cancel_requested))
            })? {
                None => lost.push(TaskId(*id)),
                Some(true) => cancelled.push(TaskId(*id)),
                Some(false) => {}
            }
        }
        if !lost.is_empty() {
            // Told once: the next extension asks only for what is left.
            lease.ids.retain(|id| !lost.contains(&TaskId(*id)));
            lease.save(self.db)?;
        }
        Ok(ExtendAnswer::Extended { cancelled, lost })
    }
}

/// A success that asks for nothing else.
fn is_plain_done(settlement: &Settlement) -> bool {
    matches!(settlement.outcome, Outcome::Done) && settlement.follow_ups.is_empty()
}
