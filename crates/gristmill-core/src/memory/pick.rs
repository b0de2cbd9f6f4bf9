//! Picking what a claim takes: the front of the queue, or of what its limits let
//! through.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

use super::lane::{Entry, Lane};
use super::state::{QueueState, Row, State};
use crate::policy::room::{self, Rooms};
use crate::{ClaimRequest, Settings, Timestamp};

/// How many entries at the front are looked at, beyond those that are asked for,
/// before the groups are walked one by one.
const FRONT: usize = 256;

/// Tasks, each with its slot where there are slots.
type Picked = Vec<(i64, Option<u32>)>;

/// What a claim gathers.
struct Batch {
    picked: Picked,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

/// What became of a task that comes next.
struct Added {
    taken: bool,
    /// Nothing more is to be taken.
    full: bool,
}

impl Batch {
    /// Takes the task, if it fits. One with an expired lease behind it comes in a
    /// batch of its own, so that what it may do to its worker happens to nobody
    /// else's task.
    fn add(&mut self, row: &Row) -> Added {
        self.bytes += row.payload_len;
        let suspect = row.task.expiries > 0;
        if !self.picked.is_empty() && (suspect || self.bytes > self.most_bytes) {
            return Added { taken: false, full: true };
        }
        self.picked.push((row.task.id.0, None));
        Added { taken: true, full: suspect || self.picked.len() == self.most }
    }
}

impl State {
    /// What a claim takes.
    pub(super) fn pick(
        &self,
        number: u32,
        settings: &Settings,
        request: &ClaimRequest,
        now: Timestamp,
    ) -> Picked {
        let source = request.source.as_deref();
        let Some(queue) = self.queues.get(&number) else {
            return Picked::new();
        };
        if let Some(slots) = settings.slots {
            return self.pick_slot(queue, slots, source, now);
        }
        let asked = request.most(settings, &self.limits);
        let leased = || Ok::<_, Infallible>(queue.counts.processing);
        let full_at = || Ok(queue.buckets.get("").copied());
        let Ok(most) = room::of_queue(asked, settings, now, leased, full_at);
        if most == 0 {
            return Picked::new();
        }
        let most_bytes = self.limits.claim_bytes;
        let batch = Batch { picked: Picked::new(), bytes: 0, most, most_bytes };
        if settings.is_grouped() {
            self.pick_by_group(queue, settings, batch, source, now)
        } else {
            self.pick_front(queue, batch, source, now)
        }
    }

    /// Due tasks from the front: as many as asked for, within the byte limit.
    fn pick_front(
        &self,
        queue: &QueueState,
        mut batch: Batch,
        source: Option<&str>,
        now: Timestamp,
    ) -> Picked {
        let due = lane_of(queue, source).into_iter().flat_map(|lane| lane.due(now));
        for row in due.filter_map(|(_, _, id)| self.rows.get(&id)) {
            if batch.add(row).full {
                break;
            }
        }
        batch.picked
    }

    /// The same of groups that have room. Looks at the front first, which is enough
    /// while few groups are full; then from group to group, so that a hundred thousand
    /// tasks of full groups cost one look a group.
    fn pick_by_group(
        &self,
        queue: &QueueState,
        settings: &Settings,
        mut batch: Batch,
        source: Option<&str>,
        now: Timestamp,
    ) -> Picked {
        let free = |group: &str| {
            let leased = || Ok::<_, Infallible>(queue.leased.get(group).copied().unwrap_or(0));
            room::of_group(settings, now, leased, || Ok(queue.buckets.get(group).copied()))
        };
        let has_room = |group: &str| {
            let Ok(free) = free(group);
            free > 0
        };
        let mut rooms = Rooms::default();
        let mut add = |batch: &mut Batch, id: i64| {
            let Some(row) = self.rows.get(&id) else {
                return false;
            };
            let group = row.task.group.as_deref().unwrap_or_default();
            let Ok(true) = rooms.has(group, || free(group)) else {
                return false;
            };
            let added = batch.add(row);
            if added.taken {
                rooms.take(group);
            }
            added.full
        };
        if settings.is_fair() {
            self.go_round(queue, source, now, |id| {
                let before = batch.picked.len();
                let full = add(&mut batch, id);
                (batch.picked.len() > before, full)
            });
            return batch.picked;
        }
        let mut left = FRONT + batch.most;
        let mut last = None;
        for entry in lane_of(queue, source).into_iter().flat_map(|lane| lane.due(now)) {
            if left == 0 {
                break;
            }
            left -= 1;
            last = Some(entry);
            if add(&mut batch, entry.2) {
                return batch.picked;
            }
        }
        let Some(last) = last.filter(|_| left == 0) else {
            return batch.picked;
        };
        // Of each group with room the first task behind the front; the foremost of
        // them is taken, and the next of its group stands for it.
        let of_source = |entry: &Entry| {
            source.is_none()
                || self.rows.get(&entry.2).is_some_and(|row| row.task.source.as_deref() == source)
        };
        let next = |lane: &Lane, after: Entry| lane.due_after(now, after).find(&of_source);
        let mut heads: BinaryHeap<Reverse<(Entry, &String)>> = BinaryHeap::new();
        for (group, lane) in queue.by_group.iter().filter(|(group, _)| has_room(group)) {
            heads.extend(next(lane, last).map(|entry| Reverse((entry, group))));
        }
        while let Some(Reverse((entry, group))) = heads.pop() {
            let before = batch.picked.len();
            if add(&mut batch, entry.2) {
                break;
            }
            // A group that gave nothing has no room any more.
            if batch.picked.len() > before
                && let Some(lane) = queue.by_group.get(group)
            {
                heads.extend(next(lane, entry).map(|entry| Reverse((entry, group))));
            }
        }
        batch.picked
    }

    /// The first due task of a group that has a free slot.
    fn pick_slot(
        &self,
        queue: &QueueState,
        slots: u32,
        source: Option<&str>,
        now: Timestamp,
    ) -> Picked {
        let mut best: Option<(Entry, u32)> = None;
        for (group, lane) in &queue.by_group {
            let Some(slot) = self.free_slot(queue.queue.number, group, slots) else {
                continue;
            };
            let first = lane.due(now).find(|(_, _, id)| {
                source.is_none()
                    || self.rows.get(id).is_some_and(|row| row.task.source.as_deref() == source)
            });
            if let Some(entry) = first
                && best.is_none_or(|(other, _)| entry < other)
            {
                best = Some((entry, slot));
            }
        }
        best.map(|((_, _, id), slot)| (id, Some(slot))).into_iter().collect()
    }

    /// The smallest slot no lease of the group holds. A lease that ran out but
    /// was not taken back still holds its own, and its share of the limit.
    fn free_slot(&self, number: u32, group: &str, slots: u32) -> Option<u32> {
        let held: Vec<u32> = self
            .leases
            .values()
            .filter(|lease| lease.number == number && lease.group == group)
            .filter_map(|lease| lease.slot)
            .collect();
        if held.len() as u64 >= u64::from(slots) {
            return None;
        }
        (0..slots).find(|slot| !held.contains(slot))
    }
}

/// The claim order asked for: the queue's, or one source's part of it.
pub(super) fn lane_of<'a>(queue: &'a QueueState, source: Option<&str>) -> Option<&'a Lane> {
    match source {
        None => Some(&queue.lane),
        Some(source) => queue.by_source.get(source),
    }
}
