//! Claiming: the front of the queue under a new lease.

use super::pick::lane_of;
use super::reported::Reported;
use super::state::{Lease, State};
use crate::claim::token_claimed_before;
use crate::{Claim, ClaimRequest, ClaimedTask, LeaseView, Result, State as TaskState, Timestamp};

impl State {
    /// Takes due tasks under a new lease.
    ///
    /// # Errors
    /// As [`Store::claim`](crate::Store::claim).
    pub fn claim(&mut self, request: ClaimRequest, now: Timestamp) -> Result<Claim> {
        let number = self.number(&request.queue)?;
        let settings = self.queue_mut(number)?.queue.settings.clone();
        let lease = request.lease_on(&settings)?;
        if self.leases.contains_key(&request.token) {
            return Err(token_claimed_before());
        }
        let mut claim = request.nothing_yet(lease, self.queue_mut(number)?.queue.paused);
        if claim.paused {
            return Ok(claim);
        }
        claim.failed = self.reclaim(Some(number), now).1;
        let held_back = self.held_back(number, now);
        let picked = self.pick(number, &settings, &request, now);
        if picked.is_empty() {
            let source = request.source.as_deref();
            let refill = self.refill(number, source, now);
            let queue = self.queue_mut(number)?;
            claim.held_back = held_back;
            let due = lane_of(queue, source).and_then(|lane| lane.next_due(now));
            claim.next_due = due.map(|at| at.since(now)).into_iter().chain(refill).min();
            return Ok(claim);
        }
        let (until, length) = (now.after(lease), lease);
        let group = picked.first().map(|(id, _)| self.group_of(*id)).unwrap_or_default();
        let group = if settings.one_at_a_time() { group } else { String::new() };
        let concurrent = settings.one_at_a_time().then(|| self.live_in_group(number, &group, now));
        let slot = picked.first().and_then(|(_, slot)| *slot);
        claim.tasks.reserve_exact(picked.len());
        let Some(queue) = self.queues.get_mut(&number) else {
            return Ok(claim);
        };
        for (id, _) in &picked {
            let Some(row) = self.rows.get_mut(id) else {
                continue;
            };
            queue.leave(row);
            queue.take_flight(row);
            queue.count_leased(row, true);
            let task = &mut row.task;
            row.lease = Some(request.token);
            task.state = TaskState::Processing;
            task.attempts += 1;
            task.claims += 1;
            task.claimed_at = Some(now);
            task.lease =
                Some(LeaseView { worker: request.worker.clone(), until, slot, progress: None });
            claim.tasks.push(ClaimedTask {
                id: task.id,
                payload: task.payload.clone(),
                key: task.key.clone(),
                group: task.group.clone(),
                source: task.source.clone(),
                priority: task.priority,
                attempt: task.attempts,
                claims: task.claims,
                created_at: task.created_at,
                run_at: task.run_at,
                prev_run_at: task.prev_run_at,
                headers: task.headers.clone(),
                settings: task.settings.clone(),
                checkpoint: task.checkpoint.clone(),
                concurrent,
                slot,
                alone: ClaimedTask::runs_alone(task.expiries),
            });
        }
        let ids: Vec<i64> = picked.into_iter().map(|(id, _)| id).collect();
        self.take_tokens(number, &settings, &ids, now);
        self.note_turns(number, &settings, &ids);
        if settings.is_fair() {
            claim.tasks.sort_by_key(|task| (task.priority, task.run_at, task.id));
        }
        let queue = self.queue_mut(number)?;
        queue.counts.processing += ids.len() as u64;
        queue.counters.claimed += ids.len() as u64;
        queue.minute(now, |minute| {
            for task in &claim.tasks {
                minute.waits.count(now.since(task.run_at));
            }
        });
        let open = ids.len();
        let (worker, claimed_at) = (request.worker, now);
        let progress = Reported::default();
        let lease =
            Lease { number, worker, claimed_at, until, length, ids, open, group, slot, progress };
        self.leases.insert(request.token, lease);
        self.expiring.insert((until, request.token));
        self.note(|changes| changes.leases.push(request.token));
        Ok(claim)
    }

    fn group_of(&self, id: i64) -> String {
        self.rows.get(&id).and_then(|row| row.task.group.clone()).unwrap_or_default()
    }

    fn live_in_group(&self, number: u32, group: &str, now: Timestamp) -> u32 {
        let live = self
            .leases
            .values()
            .filter(|l| l.number == number && l.group == group && l.until > now)
            .count();
        u32::try_from(live).unwrap_or(u32::MAX)
    }
}
