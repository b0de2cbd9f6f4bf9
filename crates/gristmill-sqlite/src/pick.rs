//! Picking what a claim takes: the front of the queue, level by level.

use gristmill_core::{ClaimedTask, Encoding, Payload, Queue, Result, Timestamp};
use rusqlite::Row as SqlRow;

use crate::row::encoding;
use crate::sql::{Sql, at, bind};
use crate::write::Write;
use crate::{checkpoint, checksum, codec};

/// A task that a claim takes.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) task: ClaimedTask,
    pub(crate) delayed: bool,
    /// It has a key and holds the waiting place.
    pub(crate) waiting: bool,
    expiries: u32,
    /// What of it cannot be read: it is taken, but not handed out.
    pub(crate) damaged: Option<String>,
}

/// A task's place in the claim order.
pub(crate) type Entry = (i16, i64, i64);

/// What a claim gathers.
pub(crate) struct Batch {
    pub(crate) picked: Vec<Picked>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl Batch {
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        Batch { picked: Vec::new(), bytes: 0, most, most_bytes }
    }

    /// Takes the task, if it fits; then says whether it is the last one. None: it
    /// does not, and nothing more is taken. A task with an expired lease behind it
    /// comes in a batch of its own, so that what it may do to its worker happens to
    /// nobody else's task.
    pub(crate) fn add(&mut self, next: Picked) -> Option<bool> {
        self.bytes += next.task.payload.bytes.len();
        let suspect = next.expiries > 0;
        if !self.picked.is_empty() && (suspect || self.bytes > self.most_bytes) {
            return None;
        }
        self.picked.push(next);
        Some(suspect || self.picked.len() == self.most)
    }
}

impl Picked {
    pub(crate) fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let key: Option<String> = row.get(at!(ClaimFront.key))?;
        let expiries: u32 = row.get(at!(ClaimFront.expiries))?;
        let payload: Vec<u8> = row.get(at!(ClaimFront.payload))?;
        let (encoding, strange) = match encoding(row.get(at!(ClaimFront.encoding))?) {
            Ok(encoding) => (encoding, None),
            Err(why) => (Encoding::Raw, Some(why)),
        };
        let headers =
            codec::headers(row.get::<_, Option<String>>(at!(ClaimFront.headers))?.as_deref());
        let own = codec::task_settings(
            row.get::<_, Option<String>>(at!(ClaimFront.settings))?.as_deref(),
        );
        let (checkpoint, torn) = checkpoint::read(row.get(at!(ClaimFront.checkpoint))?);
        let waiting = key.is_some() && row.get::<_, i64>(at!(ClaimFront.place))? == 0;
        let task = ClaimedTask {
            id: gristmill_core::TaskId(row.get(at!(ClaimFront.id))?),
            payload: Payload { bytes: payload.into(), encoding },
            key,
            group: row.get(at!(ClaimFront.grp))?,
            source: row.get(at!(ClaimFront.source))?,
            priority: row.get(at!(ClaimFront.priority))?,
            attempt: row.get::<_, u32>(at!(ClaimFront.attempts))?.saturating_add(1),
            claims: row.get::<_, u32>(at!(ClaimFront.claims))?.saturating_add(1),
            created_at: Timestamp::from_micros(row.get(at!(ClaimFront.created_at))?),
            run_at: Timestamp::from_micros(row.get(at!(ClaimFront.run_at))?),
            prev_run_at: row
                .get::<_, Option<i64>>(at!(ClaimFront.prev_run_at))?
                .map(Timestamp::from_micros),
            headers: headers.value,
            settings: own.value,
            checkpoint,
            concurrent: None,
            slot: None,
            alone: ClaimedTask::runs_alone(expiries),
        };
        let sum: Option<i64> = row.get(at!(ClaimFront.checksum))?;
        let altered = sum
            .is_some_and(|sum| checksum::of(encoding, &task.payload.bytes) != sum)
            .then(|| "the payload does not fit its checksum".to_owned());
        let damaged = strange.or(altered).or(headers.fault).or(own.fault).or(torn);
        Ok(Picked { task, delayed: row.get(at!(ClaimFront.delayed))?, waiting, expiries, damaged })
    }
}

impl Write<'_, '_> {
    /// The levels of priority that have entries, most urgent first.
    fn next_level(&self, queue: &Queue, source: Option<&str>, after: i64) -> Result<Option<i16>> {
        match source {
            None => self.db.one(
                Sql::ReadyLevel,
                bind!(ReadyLevel { queue: queue.number, after }),
                |row| row.get(at!(ReadyLevel.priority)),
            ),
            Some(source) => self.db.one(
                Sql::ReadyLevelSource,
                bind!(ReadyLevelSource { queue: queue.number, source, after }),
                |row| row.get(at!(ReadyLevelSource.priority)),
            ),
        }
    }

    /// Calls `look` with each level until it says that it has enough.
    pub(crate) fn each_level(
        &self,
        queue: &Queue,
        source: Option<&str>,
        mut look: impl FnMut(i16) -> Result<bool>,
    ) -> Result<()> {
        let mut after = i64::MIN;
        while let Some(level) = self.next_level(queue, source, after)? {
            if look(level)? {
                break;
            }
            after = i64::from(level);
        }
        Ok(())
    }

    /// Due tasks from the front: as many as asked for, within the byte limit.
    pub(crate) fn pick_batch(
        &self,
        queue: &Queue,
        max: usize,
        source: Option<&str>,
    ) -> Result<Vec<Picked>> {
        let mut batch = Batch::new(max, self.limits.claim_bytes);
        let now = self.now.as_micros();
        self.each_level(queue, source, |level| {
            let left = i64::try_from(max - batch.picked.len()).unwrap_or(i64::MAX);
            let mut full = false;
            let sql = match source {
                None => Sql::ClaimFront,
                Some(_) => Sql::ClaimFrontSource,
            };
            self.db.with(sql, |statement| {
                let mut rows = match source {
                    None => statement.query(bind!(ClaimFront {
                        queue: queue.number,
                        priority: level,
                        now,
                        limit: left
                    }))?,
                    Some(source) => statement.query(bind!(ClaimFrontSource {
                        queue: queue.number,
                        priority: level,
                        now,
                        source,
                        limit: left
                    }))?,
                };
                while let Some(row) = rows.next()? {
                    full = batch.add(Picked::read(row)?).unwrap_or(true);
                    if full {
                        break;
                    }
                }
                Ok(())
            })?;
            Ok(full)
        })?;
        Ok(batch.picked)
    }

    /// When the next task falls due.
    pub(crate) fn next_due(
        &self,
        queue: &Queue,
        source: Option<&str>,
    ) -> Result<Option<Timestamp>> {
        let now = self.now.as_micros();
        let mut next: Option<i64> = None;
        self.each_level(queue, source, |level| {
            let at: Option<i64> = match source {
                None => self.db.one(
                    Sql::ReadyNextDue,
                    bind!(ReadyNextDue { queue: queue.number, priority: level, now }),
                    |row| row.get(at!(ReadyNextDue.run_at)),
                )?,
                Some(source) => self.db.one(
                    Sql::ReadyNextDueSource,
                    bind!(ReadyNextDueSource { queue: queue.number, priority: level, now, source }),
                    |row| row.get(at!(ReadyNextDueSource.run_at)),
                )?,
            };
            next = [next, at].into_iter().flatten().min();
            Ok(false)
        })?;
        Ok(next.map(Timestamp::from_micros))
    }
}
