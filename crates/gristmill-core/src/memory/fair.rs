//! Claims that take turns between groups.

use std::ops::Bound;

use super::lane::{Entry, Lane};
use super::pick::lane_of;
use super::state::{QueueState, State};
use crate::{Settings, Timestamp};

impl State {
    /// Whose turn it was last in a priority of a queue.
    #[must_use]
    pub fn turn(&self, number: u32, priority: i16) -> Option<&str> {
        self.queues.get(&number)?.turns.get(&priority).map(String::as_str)
    }

    /// The same of all priorities of a queue.
    pub fn all_turns(&self, number: u32) -> impl Iterator<Item = (i16, &str)> {
        let queue = self.queues.get(&number);
        let turns = queue.into_iter().flat_map(|queue| queue.turns.iter());
        turns.map(|(priority, group)| (*priority, group.as_str()))
    }

    /// Sets whose turn it was last.
    pub fn restore_turn(&mut self, number: u32, priority: i16, group: String) {
        if let Some(queue) = self.queues.derived_mut(&number) {
            queue.turns.insert(priority, group);
        }
    }

    /// Takes down whose turn it was, of tasks in the order in which they were picked.
    pub(super) fn note_turns(&mut self, number: u32, settings: &Settings, ids: &[i64]) {
        if !settings.is_fair() {
            return;
        }
        for id in ids {
            let Some(row) = self.rows.get(id) else { continue };
            let group = row.task.group.clone().unwrap_or_default();
            let priority = row.task.priority;
            self.restore_turn(number, priority, group);
            self.note(|changes| changes.turns.push((number, priority)));
        }
    }

    /// Goes round the groups of each priority, from behind the one whose turn it was
    /// last, and takes one task of each at a time. `add` says whether it took the task,
    /// and whether nothing more is to be taken.
    pub(super) fn go_round<'a>(
        &self,
        queue: &'a QueueState,
        source: Option<&str>,
        now: Timestamp,
        mut add: impl FnMut(i64) -> (bool, bool),
    ) {
        let of_source = |entry: &Entry| {
            source.is_none()
                || self.rows.get(&entry.2).is_some_and(|row| row.task.source.as_deref() == source)
        };
        for priority in lane_of(queue, source).into_iter().flat_map(Lane::levels) {
            // Says whether nothing more is to be taken.
            let mut turn = |lane: &'a Lane, behind, next: &mut Vec<(&'a Lane, Option<Entry>)>| {
                let Some(entry) = lane.next_in_level(priority, behind, now).find(&of_source) else {
                    return false;
                };
                let (taken, full) = add(entry.2);
                if taken && !full {
                    next.push((lane, Some(entry)));
                }
                full
            };
            let last = queue.turns.get(&priority);
            let (behind, up_to) = match last {
                Some(last) => (Bound::Excluded(last), Bound::Included(last)),
                None => (Bound::Unbounded, Bound::Unbounded),
            };
            let first = queue.by_group.range::<String, _>((behind, Bound::Unbounded));
            let wrapped = queue.by_group.range::<String, _>((Bound::Unbounded, up_to));
            let wrapped = wrapped.filter(|_| last.is_some());
            // The first round ends where the claim is full, however many groups there
            // are; then whoever had something may have more, and the others have not.
            let everybody = first.chain(wrapped).map(|(_, lane)| (lane, None));
            let mut round = Vec::new();
            for (lane, behind) in everybody {
                if turn(lane, behind, &mut round) {
                    return;
                }
            }
            while !round.is_empty() {
                for (lane, behind) in std::mem::take(&mut round) {
                    if turn(lane, behind, &mut round) {
                        return;
                    }
                }
            }
        }
    }
}
