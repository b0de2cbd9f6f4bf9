//! What time brings: leases that ran out, tasks that fell due, blocked tasks
//! that were missed, and things past their keeping time.

use std::time::Duration;

use gristmill_core::policy::ending;
use gristmill_core::policy::keeping;
use gristmill_core::policy::outcome::{EXPIRED, Next, after_expiry};
use gristmill_core::policy::reclaim_guard::spared;
use gristmill_core::{AttemptEnd, Queue, Result, SweepReport, TaskId, Token};

use crate::attempt::Ended;
use crate::db::Db;
use crate::documents;
use crate::lease::{self, Lease};
use crate::row::Row;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// Tasks counted as ready in one statement.
const PROMOTED: i64 = 1_000;
/// Such statements in one call.
const PROMOTIONS: usize = 100;
/// Blocked tasks freed in one sweep, because nobody did.
const FREED: i64 = 10_000;

/// A queue and a key in whose waiting place a task is blocked by nothing.
pub(crate) type Missed = (u32, String);

/// Looks for blocked tasks whose key is free: no un-blocking rests on one event
/// alone.
pub(crate) fn missed(db: &Db<'_>) -> Result<Vec<Missed>> {
    db.all(Sql::UnblockMissed, bind!(UnblockMissed { limit: FREED }), |row| {
        Ok((row.get(at!(UnblockMissed.queue))?, row.get(at!(UnblockMissed.key))?))
    })
}

/// A lease that ran out.
struct Expired {
    token: Vec<u8>,
    queue: u32,
    length: Duration,
}

impl Expired {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let length =
            Duration::from_micros(row.get::<_, i64>(at!(LeaseExpired.length))?.unsigned_abs());
        Ok(Expired {
            token: row.get(at!(LeaseExpired.token))?,
            queue: row.get(at!(LeaseExpired.queue))?,
            length,
        })
    }
}

impl Write<'_, '_> {
    /// Takes back tasks whose lease ran out, of one queue or of all; oldest
    /// deadline first. Returns how many tasks went back or failed, and which
    /// failed.
    pub(crate) fn reclaim(&mut self, number: Option<u32>) -> Result<(u64, Vec<TaskId>)> {
        let now = self.now.as_micros();
        let expired = match number {
            None => self.db.all(Sql::LeaseExpired, bind!(LeaseExpired { now }), Expired::read)?,
            Some(number) => self.expired_of(number)?,
        };
        let (mut taken, mut failed) = (0, Vec::new());
        let mut leases = 0;
        for expired in expired {
            if leases == self.limits.reclaimed_leases {
                break;
            }
            if self.known.guard.may_reclaim(self.monotonic, spared(expired.length)) {
                let queue = self.numbered(expired.queue)?;
                leases += 1;
                taken += self.expire(&queue, lease::token(&expired.token)?, &mut failed)?;
            }
        }
        Ok((taken, failed))
    }

    fn expired_of(&self, number: u32) -> Result<Vec<Expired>> {
        self.db.all(
            Sql::LeaseExpiredQueue,
            bind!(LeaseExpiredQueue { queue: number, now: self.now.as_micros() }),
            Expired::read,
        )
    }

    /// How long until the first lease of a queue that ran out is taken back.
    pub(crate) fn held_back(&self, number: u32) -> Result<Option<Duration>> {
        let guard = &self.known.guard;
        if guard.held_for(self.monotonic).is_none() {
            return Ok(None);
        }
        let expired = self.expired_of(number)?;
        let left = |one: &Expired| guard.held_back(self.monotonic, spared(one.length));
        Ok(expired.iter().filter_map(left).min())
    }

    /// After a jump back of the wall clock: brings back what a clock that was
    /// ahead left. No lease lasts longer than its length, schedules fire again, no
    /// minute that has not come is counted in, no caller's id is known and no window
    /// lasts for longer than its queue says, and nobody was heard of in the future.
    pub(crate) fn clamp(&mut self) -> Result<()> {
        tracing::warn!("the wall clock went back: leases and schedules are brought back with it");
        let now = self.now.as_micros();
        self.db.run(Sql::LeaseClamp, bind!(LeaseClamp { now }))?;
        self.clamp_schedules()?;
        for queue in self.queues()? {
            self.db.run(Sql::MinuteAhead, bind!(MinuteAhead { queue: queue.number, now }))?;
            let longest = self.now.after(queue.settings.id_window).as_micros();
            let kept = self.now.after(ending::longest(&queue.settings)).as_micros();
            self.db
                .run(Sql::EndingClamp, bind!(EndingClamp { longest: kept, queue: queue.number }))?;
            self.db.run(Sql::PutIdClamp, bind!(PutIdClamp { longest, queue: queue.number }))?;
            self.clamp_windows(&queue)?;
            self.clamp_buckets(&queue)?;
        }
        self.db.run(Sql::DocumentClamp, bind!(DocumentClamp { now }))?;
        self.known.demote = true;
        Ok(())
    }

    /// Counts tasks that are not due any more as delayed, after a jump back.
    fn demote(&mut self, queues: &[Queue]) -> Result<()> {
        if !self.known.demote {
            return Ok(());
        }
        let mut left = PROMOTIONS;
        for queue in queues {
            let mut level = i64::from(i16::MIN) - 1;
            while let Some(priority) = self.db.one(
                Sql::ReadyLevel,
                bind!(ReadyLevel { queue: queue.number, after: level }),
                |row| row.get(at!(ReadyLevel.priority)),
            )? {
                level = priority;
                loop {
                    if left == 0 {
                        return Ok(());
                    }
                    let demoted = self.db.run(
                        Sql::ReadyDemote,
                        bind!(ReadyDemote {
                            queue: queue.number,
                            priority: level,
                            now: self.now.as_micros(),
                            limit: PROMOTED
                        }),
                    )?;
                    let demoted = i64::try_from(demoted).unwrap_or(0);
                    if demoted == 0 {
                        break;
                    }
                    let delta = self.delta(queue.number);
                    delta.ready -= demoted;
                    delta.delayed += demoted;
                    left -= 1;
                }
            }
        }
        self.known.demote = false;
        Ok(())
    }

    fn expire(&mut self, queue: &Queue, token: Token, failed: &mut Vec<TaskId>) -> Result<u64> {
        let Some(lease) = Lease::load(self.db, token)? else {
            return Ok(0);
        };
        self.db.run(Sql::LeaseEnd, bind!(LeaseEnd { number: lease.number }))?;
        let mut taken = 0;
        for id in &lease.ids {
            // Gone with its subject.
            let Some(row) = Row::load(self.db, *id)? else {
                continue;
            };
            let next = after_expiry(&row.facts(), &row.own().over(&queue.settings), self.now);
            if matches!(next, Next::Failed(_)) {
                failed.push(TaskId(*id));
            }
            self.delta(queue.number).counters.expired += 1;
            let error = Some(EXPIRED.to_owned());
            self.end_attempt(
                queue,
                row,
                &lease,
                next,
                Ended { end: AttemptEnd::Expired, error, value: None },
            )?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Counts tasks that fell due as ready.
    pub(crate) fn promote(&mut self) -> Result<u64> {
        let mut promoted = 0;
        for _ in 0..PROMOTIONS {
            let queues: Vec<u32> = self.db.all(
                Sql::ReadyPromote,
                bind!(ReadyPromote { now: self.now.as_micros(), limit: PROMOTED }),
                |row| row.get(at!(ReadyPromote.queue)),
            )?;
            for number in &queues {
                let delta = self.delta(*number);
                delta.ready += 1;
                delta.delayed -= 1;
            }
            promoted += queues.len() as u64;
            if queues.is_empty() {
                break;
            }
        }
        Ok(promoted)
    }

    /// Does everything that is due with time.
    pub(crate) fn sweep(&mut self, missed: &[Missed]) -> Result<SweepReport> {
        let queues = self.queues()?;
        self.demote(&queues)?;
        let (reclaimed, failed) = self.reclaim(None)?;
        let mut report = SweepReport {
            reclaimed,
            failed,
            promoted: self.promote()?,
            unblocked: self.unblock_missed(missed)?,
            ..SweepReport::default()
        };
        if self.known.guard.may_forget(self.monotonic) {
            self.forget(&queues, &mut report)?;
        }
        Ok(report)
    }

    fn queues(&self) -> Result<Vec<Queue>> {
        crate::stats::queues(self.db)
    }

    /// Throws away what is past its keeping time.
    fn forget(&mut self, queues: &[Queue], report: &mut SweepReport) -> Result<()> {
        let page = i64::try_from(self.limits.page).unwrap_or(i64::MAX);
        let now = self.now.as_micros();
        report.forgotten_ids =
            self.db.run(Sql::SweepIds, bind!(SweepIds { now, limit: page * 10 }))? as u64;
        // In the other stores they lie with the ids.
        report.forgotten_ids +=
            self.db.run(Sql::WindowForget, bind!(WindowForget { now, limit: page * 10 }))? as u64;
        self.forget_minutes(queues, page)?;
        for queue in queues {
            self.db.run(Sql::BucketForget, bind!(BucketForget { queue: queue.number, now }))?;
            report.pruned_done += self.prune_done(queue, page)?;
            report.pruned_failed += self.prune_failed(queue, page)?;
        }
        report.forgotten_endings = self.forget_endings(page)?;
        report.forgotten_documents =
            self.db.run(Sql::DocumentForget, bind!(DocumentForget { now }))? as u64;
        Ok(())
    }

    /// So many at a time, over all queues: a shorter time may leave many at once.
    fn forget_minutes(&self, queues: &[Queue], page: i64) -> Result<()> {
        let said = documents::get(self.db, keeping::KIND, keeping::MINUTES, self.now)?;
        let kept = keeping::minutes_kept(said.as_ref().map(|document| document.body.as_str()));
        let before = self.now.before(kept).minute().as_micros();
        let mut left = page;
        for queue in queues {
            let gone = self.db.run(
                Sql::MinutePrune,
                bind!(MinutePrune { queue: queue.number, before, limit: left }),
            )?;
            left -= i64::try_from(gone).unwrap_or(left);
        }
        Ok(())
    }

    /// Frees blocked tasks that a reader found with nothing in front of them.
    pub(crate) fn unblock_missed(&mut self, missed: &[Missed]) -> Result<u64> {
        let mut unblocked = 0;
        for (number, key) in missed {
            let queue = self.numbered(*number)?;
            // It may have been claimed or freed since.
            if self.places(&queue, key)?.in_flight.is_none() {
                unblocked += u64::from(self.unblock(&queue, key)?);
            }
        }
        Ok(unblocked)
    }

    fn prune_done(&mut self, queue: &Queue, page: i64) -> Result<u64> {
        let until = match queue.settings.keep_done {
            None => self.now,
            Some(keep) if self.now.as_micros() < keep_micros(keep) => return Ok(0),
            Some(keep) => self.now.before(keep),
        };
        let pruned = self.db.run(
            Sql::SweepDone,
            bind!(SweepDone { queue: queue.number, until: until.as_micros(), limit: page }),
        )?;
        self.delta(queue.number).done_kept -= i64::try_from(pruned).unwrap_or(0);
        Ok(pruned as u64)
    }

    fn prune_failed(&mut self, queue: &Queue, page: i64) -> Result<u64> {
        let Some(keep) = queue.settings.keep_failed else {
            return Ok(0);
        };
        if self.now.as_micros() < keep_micros(keep) {
            return Ok(0);
        }
        let until = self.now.before(keep).as_micros();
        let over: Vec<i64> = self.db.all(
            Sql::SweepFailed,
            bind!(SweepFailed { queue: queue.number, until, limit: page }),
            |row| row.get(at!(SweepFailed.id)),
        )?;
        for id in &over {
            self.end_failed(queue, *id)?;
            self.db.run(Sql::TaskDelete, bind!(TaskDelete { id }))?;
            self.db.run(Sql::FailedRemove, bind!(FailedRemove { id }))?;
        }
        let delta = self.delta(queue.number);
        delta.failed -= i64::try_from(over.len()).unwrap_or(0);
        delta.counters.discarded += over.len() as u64;
        Ok(over.len() as u64)
    }
}

fn keep_micros(keep: std::time::Duration) -> i64 {
    i64::try_from(keep.as_micros()).unwrap_or(i64::MAX)
}
