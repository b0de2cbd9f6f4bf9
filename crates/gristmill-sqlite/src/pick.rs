//! Picking what a claim takes: the front of the queue, level by level.

use std::collections::HashMap;

use gristmill_core::{ClaimedTask, Encoding, Payload, Queue, Result, Timestamp};
use rusqlite::Row as SqlRow;

use crate::row::encoding;
use crate::sql::{Sql, at, bind};
use crate::write::Write;
use crate::{checkpoint, checksum, codec};

/// How many entries at the front are looked at before the groups are walked
/// one by one.
const FRONT: i64 = 64;

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
type Entry = (i16, i64, i64);

impl Picked {
    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
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
    fn each_level(
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
    /// A task with an expired lease behind it comes in a batch of its own, so
    /// that what it may do to its worker happens to nobody else's task.
    pub(crate) fn pick_batch(
        &self,
        queue: &Queue,
        max: usize,
        source: Option<&str>,
    ) -> Result<Vec<Picked>> {
        let mut picked: Vec<Picked> = Vec::new();
        let mut bytes = 0usize;
        let now = self.now.as_micros();
        self.each_level(queue, source, |level| {
            let left = i64::try_from(max - picked.len()).unwrap_or(i64::MAX);
            let mut full = false;
            let mut take = |row: &SqlRow<'_>| -> rusqlite::Result<bool> {
                let size = row.get_ref(at!(ClaimFront.payload))?.as_blob().map_or(0, <[u8]>::len);
                bytes += size;
                let next = Picked::read(row)?;
                let suspect = next.expiries > 0;
                if !picked.is_empty() && (suspect || bytes > self.limits.claim_bytes) {
                    full = true;
                    return Ok(true);
                }
                picked.push(next);
                full = suspect || picked.len() == max;
                Ok(full)
            };
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
                    if take(row)? {
                        break;
                    }
                }
                Ok(())
            })?;
            Ok(full)
        })?;
        Ok(picked)
    }

    /// The first due task of a group that has a free slot, and that slot.
    pub(crate) fn pick_slot(
        &self,
        queue: &Queue,
        slots: u32,
        source: Option<&str>,
    ) -> Result<Option<(Picked, u32)>> {
        let mut held: HashMap<String, Vec<u32>> = HashMap::new();
        for (group, slot) in
            self.db.all(Sql::LeaseSlots, bind!(LeaseSlots { queue: queue.number }), |row| {
                Ok((
                    row.get::<_, String>(at!(LeaseSlots.grp))?,
                    row.get::<_, u32>(at!(LeaseSlots.slot))?,
                ))
            })?
        {
            held.entry(group).or_default().push(slot);
        }
        let slots_of = |group: &str| free_slot(held.get(group).map_or(&[], Vec::as_slice), slots);
        let mut best = self.first_in_front(queue, source, &slots_of)?;
        if best.is_none() {
            best = self.first_of_groups(queue, source, &slots_of)?;
        }
        let Some(((priority, run_at, id), slot)) = best else {
            return Ok(None);
        };
        let picked = self.db.one(
            Sql::ClaimOne,
            bind!(ClaimOne { queue: queue.number, priority, run_at, id }),
            Picked::read,
        )?;
        Ok(picked.map(|picked| (picked, slot)))
    }

    /// Looks at the front only: enough while few groups are full.
    fn first_in_front(
        &self,
        queue: &Queue,
        source: Option<&str>,
        slots_of: &impl Fn(&str) -> Option<u32>,
    ) -> Result<Option<(Entry, u32)>> {
        let mut best = None;
        let mut left = FRONT;
        let now = self.now.as_micros();
        self.each_level(queue, source, |level| {
            let read = |row: &SqlRow<'_>| {
                Ok((
                    row.get::<_, i64>(at!(ReadyGroupsInFront.run_at))?,
                    row.get::<_, i64>(at!(ReadyGroupsInFront.id))?,
                    row.get::<_, String>(at!(ReadyGroupsInFront.grp))?,
                ))
            };
            let front = match source {
                None => self.db.all(
                    Sql::ReadyGroupsInFront,
                    bind!(ReadyGroupsInFront {
                        queue: queue.number,
                        priority: level,
                        now,
                        limit: left
                    }),
                    read,
                )?,
                Some(source) => self.db.all(
                    Sql::ReadyGroupsInFrontSource,
                    bind!(ReadyGroupsInFrontSource {
                        queue: queue.number,
                        priority: level,
                        now,
                        source,
                        limit: left
                    }),
                    read,
                )?,
            };
            left -= i64::try_from(front.len()).unwrap_or(FRONT);
            best = front.into_iter().find_map(|(run_at, id, group)| {
                slots_of(&group).map(|slot| ((level, run_at, id), slot))
            });
            Ok(best.is_some() || left <= 0)
        })?;
        Ok(best)
    }

    /// Walks from group to group, so that a million tasks of full groups cost
    /// one look a group.
    fn first_of_groups(
        &self,
        queue: &Queue,
        source: Option<&str>,
        slots_of: &impl Fn(&str) -> Option<u32>,
    ) -> Result<Option<(Entry, u32)>> {
        let mut best: Option<(Entry, u32)> = None;
        // No group is the empty text, which no text is before.
        let ungrouped = self
            .db
            .any(Sql::ReadyHasGroup, bind!(ReadyHasGroup { queue: queue.number, grp: "" }))?;
        let mut group = ungrouped.then(String::new);
        if group.is_none() {
            group = self.next_group(queue, "")?;
        }
        while let Some(name) = group {
            if let Some(slot) = slots_of(&name)
                && let Some(entry) = self.first_of_group(queue, &name, source)?
                && best.is_none_or(|(other, _)| entry < other)
            {
                best = Some((entry, slot));
            }
            group = self.next_group(queue, &name)?;
        }
        Ok(best)
    }

    fn next_group(&self, queue: &Queue, after: &str) -> Result<Option<String>> {
        self.db.one(
            Sql::ReadyNextGroup,
            bind!(ReadyNextGroup { queue: queue.number, after }),
            |row| row.get(at!(ReadyNextGroup.grp)),
        )
    }

    fn first_of_group(
        &self,
        queue: &Queue,
        group: &str,
        source: Option<&str>,
    ) -> Result<Option<Entry>> {
        let now = self.now.as_micros();
        let mut after = i64::MIN;
        loop {
            let level = self.db.one(
                Sql::ReadyLevelGroup,
                bind!(ReadyLevelGroup { queue: queue.number, grp: group, after }),
                |row| row.get::<_, i16>(at!(ReadyLevelGroup.priority)),
            )?;
            let Some(level) = level else {
                return Ok(None);
            };
            let read = |row: &SqlRow<'_>| {
                Ok((
                    level,
                    row.get(at!(ReadyFirstOfGroup.run_at))?,
                    row.get(at!(ReadyFirstOfGroup.id))?,
                ))
            };
            let first = match source {
                None => self.db.one(
                    Sql::ReadyFirstOfGroup,
                    bind!(ReadyFirstOfGroup {
                        queue: queue.number,
                        grp: group,
                        priority: level,
                        now
                    }),
                    read,
                )?,
                Some(source) => self.db.one(
                    Sql::ReadyFirstOfGroupSource,
                    bind!(ReadyFirstOfGroupSource {
                        queue: queue.number,
                        grp: group,
                        priority: level,
                        now,
                        source
                    }),
                    read,
                )?,
            };
            if first.is_some() {
                return Ok(first);
            }
            after = i64::from(level);
        }
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

/// The smallest slot no lease of the group holds. A lease that ran out but was
/// not taken back still holds its own, and its share of the limit.
fn free_slot(held: &[u32], slots: u32) -> Option<u32> {
    if held.len() as u64 >= u64::from(slots) {
        return None;
    }
    (0..slots).find(|slot| !held.contains(slot))
}
