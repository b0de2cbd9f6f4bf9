//! Picking where claims look at groups: what their limits let through.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use gristmill_core::policy::room::{self, Rooms};
use gristmill_core::{Queue, Result};
use rusqlite::Row as SqlRow;

use crate::codec;
use crate::pick::{Batch, Entry, Picked};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// How many entries at the front are looked at, beyond those that are asked for,
/// before the groups are walked one by one.
const FRONT: i64 = 256;

impl Write<'_, '_> {
    /// How many tasks of the queue are under lease, also where the lease has run out.
    pub(crate) fn leased(&self, queue: &Queue) -> Result<u64> {
        let leased =
            self.db.one(Sql::LeaseOpen, bind!(LeaseOpen { queue: queue.number }), |row| {
                row.get::<_, i64>(at!(LeaseOpen.open))
            })?;
        Ok(leased.map_or(0, crate::delta::unsigned))
    }

    /// The same of each group. Costs what is under lease, and nothing that waits.
    fn leased_by_group(&self, queue: &Queue) -> Result<HashMap<String, u64>> {
        let mut leased = HashMap::new();
        let leases =
            self.db.all(Sql::LeaseIds, bind!(LeaseIds { queue: queue.number }), |row| {
                Ok(codec::ids(row.get_ref(at!(LeaseIds.ids))?.as_blob()?))
            })?;
        self.db.with(Sql::TaskGroup, |statement| {
            for id in leases.iter().flatten() {
                if let Some(row) = statement.query(bind!(TaskGroup { id }))?.next()? {
                    *leased.entry(row.get::<_, String>(at!(TaskGroup.grp))?).or_default() += 1;
                }
            }
            Ok(())
        })?;
        Ok(leased)
    }

    /// Due tasks of groups that have room. Looks at the front first, which is enough
    /// while few groups are full; then from group to group, so that a million tasks
    /// of full groups cost one look a group.
    pub(crate) fn pick_by_group(
        &self,
        queue: &Queue,
        most: usize,
        source: Option<&str>,
    ) -> Result<Vec<Picked>> {
        let settings = &queue.settings;
        let leased = match settings.counts_groups() {
            true => self.leased_by_group(queue)?,
            false => HashMap::new(),
        };
        let free = |group: &str| {
            let leased = || Ok(leased.get(group).copied().unwrap_or(0));
            room::of_group(settings, self.now, leased, || self.bucket(queue, group))
        };
        let mut rooms = Rooms::default();
        let mut batch = Batch::new(most, self.limits.claim_bytes);
        // Says whether something was taken, and whether nothing more is to be.
        let mut add = |batch: &mut Batch, entry: Entry, group: &str| -> Result<(bool, bool)> {
            if !rooms.has(group, || free(group))? {
                return Ok((false, false));
            }
            let (priority, run_at, id) = entry;
            let picked = self.db.one(
                Sql::ClaimOne,
                bind!(ClaimOne { queue: queue.number, priority, run_at, id }),
                Picked::read,
            )?;
            Ok(match picked.map(|picked| batch.add(picked)) {
                Some(Some(full)) => {
                    rooms.take(group);
                    (true, full)
                }
                Some(None) => (false, true),
                None => (false, false),
            })
        };
        if settings.is_fair() {
            self.go_round(queue, source, |entry, group| add(&mut batch, entry, group))?;
            return Ok(batch.picked);
        }
        let mut left = FRONT.saturating_add(i64::try_from(most).unwrap_or(i64::MAX));
        let (mut full, mut last) = (false, None);
        self.each_level(queue, source, |level| {
            for (run_at, id, group) in self.front(queue, source, level, left)? {
                left -= 1;
                last = Some((level, run_at, id));
                full = add(&mut batch, (level, run_at, id), &group)?.1;
                if full {
                    break;
                }
            }
            Ok(full || left <= 0)
        })?;
        if full || left > 0 {
            return Ok(batch.picked);
        }
        // Of each group with room the first task behind the front; the foremost of
        // them is taken, and the next of its group stands for it.
        let mut heads: BinaryHeap<Reverse<(Entry, String)>> = BinaryHeap::new();
        let mut group = self.next_open_group(queue, None)?;
        while let Some(name) = group {
            group = self.next_open_group(queue, Some(&name))?;
            if free(&name)? > 0
                && let Some(entry) = self.next_of_group(queue, &name, source, last)?
            {
                heads.push(Reverse((entry, name)));
            }
        }
        while let Some(Reverse((entry, group))) = heads.pop() {
            let (taken, full) = add(&mut batch, entry, &group)?;
            if full {
                break;
            }
            // A group that gave nothing has no room any more.
            if taken && let Some(next) = self.next_of_group(queue, &group, source, Some(entry))? {
                heads.push(Reverse((next, group)));
            }
        }
        Ok(batch.picked)
    }

    /// What is due of one level, with its groups; no group is the empty text.
    pub(crate) fn front(
        &self,
        queue: &Queue,
        source: Option<&str>,
        level: i16,
        limit: i64,
    ) -> Result<Vec<(i64, i64, String)>> {
        let now = self.now.as_micros();
        let read = |row: &SqlRow<'_>| {
            Ok((
                row.get::<_, i64>(at!(ReadyGroupsInFront.run_at))?,
                row.get::<_, i64>(at!(ReadyGroupsInFront.id))?,
                row.get::<_, String>(at!(ReadyGroupsInFront.grp))?,
            ))
        };
        match source {
            None => self.db.all(
                Sql::ReadyGroupsInFront,
                bind!(ReadyGroupsInFront { queue: queue.number, priority: level, now, limit }),
                read,
            ),
            Some(source) => self.db.all(
                Sql::ReadyGroupsInFrontSource,
                bind!(ReadyGroupsInFrontSource {
                    queue: queue.number,
                    priority: level,
                    now,
                    source,
                    limit
                }),
                read,
            ),
        }
    }

    /// The first group in the order of their names, or the one after that.
    pub(crate) fn next_group(&self, queue: &Queue, after: Option<&str>) -> Result<Option<String>> {
        // No group is the empty text, which no text is before.
        if after.is_none()
            && self
                .db
                .any(Sql::ReadyHasGroup, bind!(ReadyHasGroup { queue: queue.number, grp: "" }))?
        {
            return Ok(Some(String::new()));
        }
        let after = after.unwrap_or_default();
        self.db.one(
            Sql::ReadyNextGroup,
            bind!(ReadyNextGroup { queue: queue.number, after }),
            |row| row.get(at!(ReadyNextGroup.grp)),
        )
    }

    /// The same, but for those whose bucket is empty: of them there may be many, and
    /// nothing can be taken of any.
    fn next_open_group(&self, queue: &Queue, after: Option<&str>) -> Result<Option<String>> {
        let Some((open, latest)) = self.empty_between(queue) else {
            return self.next_group(queue, after);
        };
        if after.is_none()
            && let Some(none) = self.next_group(queue, None)?.filter(String::is_empty)
        {
            return Ok(Some(none));
        }
        let after = after.unwrap_or_default();
        self.db.one(
            Sql::ReadyNextOpenGroup,
            bind!(ReadyNextOpenGroup { queue: queue.number, after, open, latest }),
            |row| row.get(at!(ReadyNextOpenGroup.grp)),
        )
    }

    /// The first due task of a group, or the first one behind a place.
    pub(crate) fn next_of_group(
        &self,
        queue: &Queue,
        group: &str,
        source: Option<&str>,
        behind: Option<Entry>,
    ) -> Result<Option<Entry>> {
        let now = self.now.as_micros();
        let mut after = behind.map_or(i64::MIN, |(level, ..)| i64::from(level) - 1);
        loop {
            let level = self.db.one(
                Sql::ReadyLevelGroup,
                bind!(ReadyLevelGroup { queue: queue.number, grp: group, after }),
                |row| row.get::<_, i16>(at!(ReadyLevelGroup.priority)),
            )?;
            let Some(level) = level else {
                return Ok(None);
            };
            let (after_run_at, after_id) = match behind {
                Some((of, run_at, id)) if of == level => (run_at, id),
                _ => (i64::MIN, i64::MIN),
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
                        now,
                        after_run_at,
                        after_id
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
                        after_run_at,
                        after_id,
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
}
