//! Picking where a queue has slots: so many of a group at a time, each with a
//! number.

use std::collections::HashMap;

use gristmill_core::{Queue, Result};

use crate::pick::{Entry, Picked};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// How many entries at the front are looked at before the groups are walked
/// one by one.
const FRONT: i64 = 64;

impl Write<'_, '_> {
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
        self.each_level(queue, source, |level| {
            let front = self.front(queue, source, level, left)?;
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
        let mut group = self.next_group(queue, None)?;
        while let Some(name) = group {
            if let Some(slot) = slots_of(&name)
                && let Some(entry) = self.next_of_group(queue, &name, source, None)?
                && best.is_none_or(|(other, _)| entry < other)
            {
                best = Some((entry, slot));
            }
            group = self.next_group(queue, Some(&name))?;
        }
        Ok(best)
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
