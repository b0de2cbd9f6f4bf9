//! What time brings: leases that ran out, tasks that fell due, and things past
//! their keeping time.

use std::time::Duration;

use super::facts::id_bytes;
use super::state::State;
use crate::policy::outcome::{EXPIRED, Next, after_expiry};
use crate::policy::reclaim_guard::spared;
use crate::{AttemptEnd, Ending, SweepReport, TaskId, Timestamp, Token};

impl State {
    /// Takes back tasks whose lease ran out, of one queue or of all; oldest
    /// deadline first. Returns how many tasks went back or failed, and which
    /// failed.
    pub fn reclaim(&mut self, number: Option<u32>, now: Timestamp) -> (u64, Vec<TaskId>) {
        let expired: Vec<Token> = self
            .expiring
            .iter()
            .take_while(|(until, _)| *until <= now)
            .filter(|(_, token)| self.may_take(token, number))
            .map(|(_, token)| *token)
            .take(self.limits.reclaimed_leases)
            .collect();
        let mut failed = Vec::new();
        let taken = expired.into_iter().map(|token| self.expire(token, now, &mut failed)).sum();
        (taken, failed)
    }

    fn may_take(&self, token: &Token, number: Option<u32>) -> bool {
        let Some(lease) = self.leases.get(token) else {
            return false;
        };
        number.is_none_or(|number| number == lease.number)
            && self.guard.may_reclaim(self.monotonic, spared(lease.length))
    }

    /// How long until the first lease of a queue that ran out is taken back.
    pub(super) fn held_back(&self, number: u32, now: Timestamp) -> Option<Duration> {
        self.guard.held_for(self.monotonic)?;
        let expired = self.expiring.iter().take_while(|(until, _)| *until <= now);
        expired
            .filter_map(|(_, token)| self.leases.get(token))
            .filter(|lease| lease.number == number)
            .filter_map(|lease| self.guard.held_back(self.monotonic, spared(lease.length)))
            .min()
    }

    fn expire(&mut self, token: Token, now: Timestamp, failed: &mut Vec<TaskId>) -> u64 {
        let Some(lease) = self.leases.get(&token) else {
            return 0;
        };
        let number = lease.number;
        let open: Vec<i64> = lease
            .ids
            .iter()
            .copied()
            .filter(|id| self.rows.get(id).is_some_and(|row| row.lease == Some(token)))
            .collect();
        let Some(settings) = self.queues.get(&number).map(|q| q.queue.settings.clone()) else {
            return 0;
        };
        let limits = self.limits.clone();
        let mut taken = 0;
        for id in open {
            let Some(row) = self.rows.get_mut(&id) else {
                continue;
            };
            let (facts, own) = (row.facts(), row.task.settings.clone());
            row.end_attempt(&limits, AttemptEnd::Expired, Some(EXPIRED.to_owned()), now);
            row.task.error = Some(EXPIRED.to_owned());
            self.close_one(token, id);
            if let Some(queue) = self.queues.get_mut(&number) {
                queue.counters.expired += 1;
            }
            let next = after_expiry(&facts, &own.over(&settings), now);
            if matches!(next, Next::Failed(_)) {
                failed.push(TaskId(id));
            }
            if self.record(TaskId(id), next, None, now).is_ok() {
                taken += 1;
            }
        }
        taken
    }

    /// Counts tasks that fell due as ready.
    pub fn promote(&mut self, now: Timestamp) -> u64 {
        let mut promoted = 0;
        for queue in self.queues.all_derived_mut() {
            while let Some((run_at, id)) = queue.delayed.first().copied() {
                if run_at > now {
                    break;
                }
                queue.delayed.pop_first();
                queue.counts.ready += 1;
                promoted += 1;
                if let Some(row) = self.rows.derived_mut(&id) {
                    row.delayed = false;
                }
            }
        }
        promoted
    }

    /// Does everything that is due with time.
    pub fn sweep(&mut self, now: Timestamp) -> SweepReport {
        let (reclaimed, failed) = self.reclaim(None, now);
        let mut report = SweepReport {
            reclaimed,
            failed,
            promoted: self.promote(now),
            // Here a place is freed and its next task enters in one step, so
            // there is nothing to miss.
            unblocked: 0,
            ..SweepReport::default()
        };
        if self.guard.may_forget(self.monotonic) {
            self.forget_buckets(now);
            report.forgotten_ids = self.forget_ids(now);
            self.forget_minutes(now);
            report.pruned_done = self.prune_done(now);
            report.pruned_failed = self.prune_failed(now);
            report.forgotten_endings = self.forget_endings(now);
            report.forgotten_documents = self.forget_documents(now);
        }
        report
    }

    fn forget_ids(&mut self, now: Timestamp) -> u64 {
        let mut forgotten = 0;
        for queue in self.queues.all_derived_mut() {
            let number = queue.queue.number;
            queue.ids.retain(|id, (_, _, until)| {
                let kept = *until > now;
                if !kept {
                    forgotten += 1;
                    self.bytes -= id_bytes(id);
                    if let Some(changes) = &mut self.changes {
                        changes.caller_ids.push((number, id.clone()));
                    }
                }
                kept
            });
        }
        forgotten
    }

    /// So many at a time, over all queues: a shorter time may leave many at once.
    fn forget_minutes(&mut self, now: Timestamp) {
        let oldest = now.before(self.minutes_kept()).minute();
        let mut left = self.limits.page;
        for queue in self.queues.all_derived_mut() {
            while left > 0
                && let Some(first) = queue.minutes.first_entry()
                && *first.key() < oldest
            {
                first.remove();
                left -= 1;
            }
        }
    }

    fn prune_done(&mut self, now: Timestamp) -> u64 {
        let over: Vec<i64> = self
            .done
            .iter()
            .filter(|(_, row)| {
                let keep = self.queues.get(&row.number).and_then(|q| q.queue.settings.keep_done);
                let since = row.task.resolved_at.unwrap_or_default();
                keep.is_none_or(|keep| since.after(keep) <= now)
            })
            .map(|(id, _)| *id)
            .take(self.limits.page)
            .collect();
        for id in &over {
            let Some(row) = self.done.remove(id) else {
                continue;
            };
            self.bytes -= row.bytes();
            if let Some(queue) = self.queues.get_mut(&row.number) {
                queue.counts.done_kept -= 1;
            }
        }
        over.len() as u64
    }

    fn prune_failed(&mut self, now: Timestamp) -> u64 {
        let over: Vec<i64> = self
            .rows
            .iter()
            .filter(|(_, row)| {
                let keep = self.queues.get(&row.number).and_then(|q| q.queue.settings.keep_failed);
                row.task.failed_at.is_some_and(|at| keep.is_some_and(|keep| at.after(keep) <= now))
            })
            .map(|(id, _)| *id)
            .take(self.limits.page)
            .collect();
        for id in &over {
            let Some(row) = self.delete(*id) else {
                continue;
            };
            let error = row.task.error.clone().unwrap_or_default();
            self.end_as(TaskId(*id), row.number, Ending::Failed { error }, now);
            if let Some(queue) = self.queues.get_mut(&row.number) {
                queue.counts.failed -= 1;
                queue.counters.discarded += 1;
            }
        }
        over.len() as u64
    }
}
