//! Claiming: the front of the queue under a new lease.

use std::time::Duration;

use gristmill_core::claim::{damaged, token_claimed_before};
use gristmill_core::policy::room;
use gristmill_core::{Claim, ClaimRequest, Outcome, Queue, Result, Settlement, TaskId};

use crate::codec;
use crate::pick::Picked;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// Takes due tasks under a new lease.
    pub(crate) fn claim(&mut self, request: &ClaimRequest) -> Result<Claim> {
        let queue = self.queue(&request.queue)?;
        let lease = request.lease_on(&queue.settings)?;
        let token = request.token.to_bytes();
        if self.db.any(Sql::LeaseQueue, bind!(LeaseQueue { token: token.as_slice() }))? {
            return Err(token_claimed_before());
        }
        let mut claim = request.nothing_yet(lease, queue.paused);
        if claim.paused {
            return Ok(claim);
        }
        claim.failed = self.reclaim(Some(queue.number))?.1;
        let source = request.source.as_deref();
        let (mut picked, slot) = self.pick(&queue, request)?;
        let Some(first) = picked.first() else {
            let next = self.next_due(&queue, source)?;
            let next = next.map(|at| at.since(self.now));
            claim.next_due = next.into_iter().chain(self.refill(&queue, source)?).min();
            claim.held_back = self.held_back(queue.number)?;
            return Ok(claim);
        };
        let one_at_a_time = queue.settings.one_at_a_time();
        let group = match &first.task.group {
            Some(group) if one_at_a_time => group.clone(),
            _ => String::new(),
        };
        if one_at_a_time {
            let live: u32 = self
                .db
                .one(
                    Sql::LeaseLive,
                    bind!(LeaseLive { queue: queue.number, grp: group, now: self.now.as_micros() }),
                    |row| row.get(at!(LeaseLive.live)),
                )?
                .unwrap_or(0);
            for one in &mut picked {
                one.task.concurrent = Some(live);
                one.task.slot = slot;
            }
        }
        self.take(&queue, &picked, source.is_some())?;
        self.take_tokens(&queue, &picked)?;
        self.note_turns(&queue, &mut picked)?;
        let ids: Vec<i64> = picked.iter().map(|one| one.task.id.0).collect();
        let open = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        self.db.run(
            Sql::LeaseNew,
            bind!(LeaseNew {
                token: token.as_slice(),
                queue: queue.number,
                worker: request.worker.as_str(),
                claimed_at: self.now.as_micros(),
                until: self.now.after(lease).as_micros(),
                length: codec::span(lease),
                grp: group,
                slot,
                open,
                ids: codec::ids_blob(&ids)
            }),
        )?;
        let now = self.now;
        let delta = self.delta(queue.number);
        delta.processing += open;
        delta.counters.claimed += ids.len() as u64;
        for one in &picked {
            delta.waits.count(now.since(one.task.run_at));
        }
        let mut bad = Vec::new();
        for one in picked {
            match one.damaged {
                None => claim.tasks.push(one.task),
                Some(why) => bad.push((one.task.id, damaged(&why))),
            }
        }
        if !bad.is_empty() {
            self.set_aside(&mut claim, bad)?;
        }
        Ok(claim)
    }

    /// What was taken and cannot be read fails at once, where people look; its
    /// neighbours are handed out.
    fn set_aside(&mut self, claim: &mut Claim, bad: Vec<(TaskId, String)>) -> Result<()> {
        claim.failed.extend(bad.iter().map(|(id, _)| *id));
        let fail = |(id, why)| Settlement::new(id, claim.token, Outcome::Fail(why));
        self.settle(&bad.into_iter().map(fail).collect::<Vec<_>>())?;
        if claim.tasks.is_empty() {
            claim.next_due = Some(Duration::ZERO);
        }
        Ok(())
    }

    fn pick(&self, queue: &Queue, request: &ClaimRequest) -> Result<(Vec<Picked>, Option<u32>)> {
        let source = request.source.as_deref();
        match queue.settings.slots {
            Some(slots) => Ok(match self.pick_slot(queue, slots, source)? {
                Some((picked, slot)) => (vec![picked], Some(slot)),
                None => (Vec::new(), None),
            }),
            None => {
                let asked = request.most(&queue.settings, self.limits);
                let leased = || self.leased(queue);
                let full_at = || self.bucket(queue, "");
                let most = room::of_queue(asked, &queue.settings, self.now, leased, full_at)?;
                let picked = match (most, queue.settings.is_grouped()) {
                    (0, _) => Vec::new(),
                    (_, true) => self.pick_by_group(queue, most, source)?,
                    (_, false) => self.pick_batch(queue, most, source)?,
                };
                Ok((picked, None))
            }
        }
    }

    /// Takes the picked tasks out of the claim order and moves their keys into
    /// the in-flight place.
    fn take(&mut self, queue: &Queue, picked: &[Picked], scattered: bool) -> Result<()> {
        let number = queue.number;
        let delta = self.delta(number);
        for one in picked {
            delta.in_order(one.delayed, -1);
        }
        // With one source, or where groups are looked at, others stand in between.
        if scattered || queue.settings.is_grouped() {
            self.db.with(Sql::ReadyLeave, |statement| {
                for one in picked {
                    let task = &one.task;
                    statement
                        .query(bind!(ReadyLeave {
                            queue: number,
                            priority: task.priority,
                            run_at: task.run_at.as_micros(),
                            id: task.id.0
                        }))?
                        .next()?;
                }
                Ok(())
            })?;
        } else {
            for level in picked.chunk_by(|a, b| a.task.priority == b.task.priority) {
                if let [first, ..] = level
                    && let [.., last] = level
                {
                    let (first, last) = (&first.task, &last.task);
                    self.db.run(
                        Sql::ReadyLeaveFront,
                        bind!(ReadyLeaveFront {
                            queue: number,
                            priority: first.priority,
                            first_run_at: first.run_at.as_micros(),
                            first_id: first.id.0,
                            last_run_at: last.run_at.as_micros(),
                            last_id: last.id.0
                        }),
                    )?;
                }
            }
        }
        self.db.with(Sql::ClaimTakeFlight, |statement| {
            for one in picked.iter().filter(|one| one.waiting) {
                statement.execute(bind!(ClaimTakeFlight { id: one.task.id.0 }))?;
            }
            Ok(())
        })
    }
}
