//! After a jump back of the wall clock: what lies ahead of it only because it was
//! wrong.

use super::state::State;
use super::window::longest;
use crate::policy::reclaim_guard::LastSeen;
use crate::{Clock, ScheduleName, Timestamp, Token};

impl State {
    /// What the last writer saw of the time; it counts until this process first
    /// looks.
    pub fn restore_last_seen(&mut self, last: LastSeen) {
        self.last_seen = Some(last);
    }

    /// What the last writer saw of the time.
    #[must_use]
    pub const fn last_seen(&self) -> Option<&LastSeen> {
        self.last_seen.as_ref()
    }

    /// Takes down what is seen of the time, for who starts next.
    pub fn see(&mut self, clock: &dyn Clock) -> LastSeen {
        let seen = self.guard.last_seen(clock.now(), clock.boot(), self.monotonic);
        self.last_seen.insert(seen).clone()
    }

    /// Brings back what a clock that was ahead left: no lease lasts longer than
    /// its length, schedules fire again, what is not due any more counts as
    /// delayed, and nobody was heard of in the future.
    pub(super) fn clamp(&mut self, now: Timestamp) {
        tracing::warn!("the wall clock went back: leases and schedules are brought back with it");
        let long: Vec<Token> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.until > now.after(lease.length))
            .map(|(token, _)| *token)
            .collect();
        for token in long {
            let Some(length) = self.leases.get(&token).map(|lease| lease.length) else { continue };
            self.restore_until(token, now.after(length), length);
            self.note(|changes| changes.extended.push(token));
        }
        let ahead: Vec<ScheduleName> = self
            .schedules
            .iter()
            .filter(|(_, schedule)| schedule.is_ahead(now))
            .map(|(name, _)| name.clone())
            .collect();
        for name in ahead {
            if let Some(schedule) = self.schedules.get_mut(&name) {
                schedule.clamp(now);
            }
        }
        let undue: Vec<i64> = self
            .queues
            .values()
            .flat_map(|queue| queue.lane.ahead(now))
            .filter(|id| self.rows.get(id).is_some_and(|row| !row.delayed))
            .collect();
        for id in undue {
            let Some(row) = self.rows.derived_mut(&id) else { continue };
            let (number, run_at) = (row.number, row.task.run_at);
            row.delayed = true;
            if let Some(queue) = self.queues.derived_mut(&number) {
                queue.delayed.insert((run_at, id));
                queue.counts.ready -= 1;
            }
        }
        self.clamp_numbers(now);
        self.clamp_endings(now);
        self.clamp_buckets(now);
        self.clamp_documents(now);
    }

    /// Minutes that have not come are not counted in, and a caller's id is known
    /// for no longer than its queue says; nor does a window last longer.
    fn clamp_numbers(&mut self, now: Timestamp) {
        for queue in self.queues.all_derived_mut() {
            queue.minutes.retain(|at, _| *at <= now);
            let (number, settings) = (queue.queue.number, &queue.queue.settings);
            for (id, (_, _, until)) in &mut queue.ids {
                let longest = longest(id, settings, now);
                if *until > longest {
                    *until = longest;
                    if let Some(changes) = &mut self.changes {
                        changes.caller_ids.push((number, id.clone()));
                    }
                }
            }
        }
    }
}
