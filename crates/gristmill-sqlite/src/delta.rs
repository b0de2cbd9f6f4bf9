//! Changes of the kept counts, gathered in memory and written once a commit.

use gristmill_core::{Counters, Result, Timestamp, Waits};
use rusqlite::ToSql;

use crate::db::Db;
use crate::sql::{Sql, bind};

/// What changed in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delta {
    pub(crate) ready: i64,
    pub(crate) delayed: i64,
    pub(crate) blocked: i64,
    pub(crate) processing: i64,
    pub(crate) failed: i64,
    pub(crate) done_kept: i64,
    pub(crate) counters: Counters,
    /// How long what was claimed had been due.
    pub(crate) waits: Waits,
}

impl Delta {
    /// One task more (or less) in the claim order.
    pub(crate) const fn in_order(&mut self, delayed: bool, by: i64) {
        if delayed {
            self.delayed += by;
        } else {
            self.ready += by;
        }
    }

    /// By how much the tasks changed that need doing or looking at.
    pub(crate) const fn total(&self) -> i64 {
        self.ready + self.delayed + self.blocked + self.processing + self.failed
    }

    const fn standing(&self) -> [i64; 6] {
        [self.ready, self.delayed, self.blocked, self.processing, self.failed, self.done_kept]
    }
}

/// What changed, by queue number. Few queues change in one commit, so a list
/// is the fastest map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deltas(Vec<(u32, Delta)>);

impl Deltas {
    /// The queue's change so far.
    pub(crate) fn of(&mut self, number: u32) -> &mut Delta {
        let at = match self.0.iter().position(|(known, _)| *known == number) {
            Some(at) => at,
            None => {
                self.0.push((number, Delta::default()));
                self.0.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "the position was just found")]
        &mut self.0[at].1
    }

    /// By how much the queue's pending tasks changed.
    pub(crate) fn pending(&self, number: u32) -> i64 {
        self.0
            .iter()
            .filter(|(known, _)| *known == number)
            .map(|(_, delta)| delta.ready + delta.delayed + delta.blocked)
            .sum()
    }

    /// Takes over another's changes.
    pub(crate) fn take_over(&mut self, other: &mut Deltas) {
        for (number, delta) in other.0.drain(..) {
            let mine = self.of(number);
            mine.ready += delta.ready;
            mine.delayed += delta.delayed;
            mine.blocked += delta.blocked;
            mine.processing += delta.processing;
            mine.failed += delta.failed;
            mine.done_kept += delta.done_kept;
            mine.counters.add(&delta.counters);
            mine.waits.add(&delta.waits);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Writes the changes, and what the current minute is to know of them.
    pub(crate) fn flush(&mut self, db: &Db<'_>, now: Timestamp) -> Result<()> {
        for (number, delta) in self.0.drain(..) {
            if delta == Delta::default() {
                continue;
            }
            let counters = delta.counters.values();
            let counters: Vec<i64> = counters.into_iter().map(signed).collect();
            let standing = delta.standing();
            // In the order of the statement's text, where the queue comes last.
            let mut values: Vec<&dyn ToSql> = standing.iter().map(|n| n as &dyn ToSql).collect();
            values.extend(counters.iter().map(|n| n as &dyn ToSql));
            values.push(&number);
            db.run(Sql::CountAdd, values.as_slice())?;
            let c = &delta.counters;
            let claimed = delta.waits.total();
            if c.put + c.done + c.failed + claimed > 0 {
                let minute = now.minute().as_micros();
                let [first, second, third, fourth, fifth, sixth, longer] =
                    delta.waits.0.map(signed);
                db.run(
                    Sql::MinuteAdd,
                    bind!(MinuteAdd {
                        queue: number,
                        minute,
                        put: signed(c.put),
                        done: signed(c.done),
                        failed: signed(c.failed),
                        wait_100ms: first,
                        wait_1s: second,
                        wait_10s: third,
                        wait_1m: fourth,
                        wait_10m: fifth,
                        wait_1h: sixth,
                        wait_longer: longer
                    }),
                )?;
            }
        }
        Ok(())
    }
}

/// SQLite's integers are signed; no count gets near the border.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A count read back; never below zero.
pub(crate) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
