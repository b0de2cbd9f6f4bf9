//! Everything but tasks as another store writes it down, and its way back.

use super::declare::{groups_differ, new_queue};
use super::state::{Remembered, State};
use crate::{Counters, Limits, Minute, Queue, Schedule, ScheduleName, Timestamp};

/// What a caller's id takes in memory, its place in the table included.
pub(super) const fn id_bytes(id: &str) -> usize {
    id.len() + 120
}

impl State {
    /// An empty state for a store that keeps its tasks elsewhere, and so has no bound of
    /// its own, but for what stays here: what their handlers returned.
    #[must_use]
    pub fn unbounded(limits: Limits) -> Self {
        let mut state = State::new(limits, u64::MAX, usize::MAX, super::MAX_BYTES);
        state.track();
        state
    }

    /// The id the next task gets.
    #[must_use]
    pub const fn next_id(&self) -> i64 {
        self.next_id
    }

    /// Ids below this were given before.
    pub fn restore_next_id(&mut self, next: i64) {
        self.next_id = self.next_id.max(next);
    }

    /// A queue by its number.
    #[must_use]
    pub fn queue(&self, number: u32) -> Option<&Queue> {
        self.queues.get(&number).map(|queue| &queue.queue)
    }

    /// A queue by its name.
    #[must_use]
    pub fn queue_named(&self, name: &str) -> Option<&Queue> {
        self.queue(*self.numbers.get(name)?)
    }

    /// All queues, by number.
    pub fn all_queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.values().map(|queue| &queue.queue)
    }

    /// Puts a queue back, with its settings in force.
    pub fn restore_queue(&mut self, queue: Queue) {
        let number = queue.number;
        self.numbers.insert(queue.name.clone(), number);
        self.woken.push(queue.name.clone());
        let Some(known) = self.queues.get_mut(&number) else {
            self.queues.insert(number, new_queue(queue));
            return;
        };
        let regroup = groups_differ(&known.queue.settings, &queue.settings);
        known.queue = queue;
        if regroup {
            self.regroup(number);
        }
    }

    /// What happened on a queue so far.
    #[must_use]
    pub fn counters(&self, number: u32) -> Option<&Counters> {
        self.queues.get(&number).map(|queue| &queue.counters)
    }

    /// Sets what happened on a queue so far.
    pub fn restore_counters(&mut self, number: u32, counters: Counters) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.counters = counters;
        }
    }

    /// One minute's numbers of a queue.
    #[must_use]
    pub fn minute(&self, number: u32, at: Timestamp) -> Option<Minute> {
        self.queues.get(&number)?.minutes.get(&at.minute()).copied()
    }

    /// All minutes of a queue that are still kept at this time.
    pub fn all_minutes(&self, number: u32, now: Timestamp) -> impl Iterator<Item = Minute> {
        let kept = now.before(self.minutes_kept()).minute()..=now;
        let queue = self.queues.get(&number);
        queue.into_iter().flat_map(move |queue| queue.minutes.range(kept.clone()).map(|(_, m)| *m))
    }

    /// Sets a minute's numbers of a queue.
    pub fn restore_minute(&mut self, number: u32, minute: Minute) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.minutes.insert(minute.at, minute);
        }
    }

    /// What is remembered under a caller's id.
    #[must_use]
    pub fn caller_id(&self, number: u32, id: &str) -> Option<Remembered> {
        self.queues.get(&number)?.ids.get(id).copied()
    }

    /// All callers' ids of a queue that are still remembered.
    pub fn caller_ids(&self, number: u32) -> impl Iterator<Item = (&str, Remembered)> {
        let queue = self.queues.get(&number);
        let ids = queue.into_iter().flat_map(|queue| queue.ids.iter());
        ids.map(|(id, known)| (id.as_str(), *known))
    }

    /// Sets or forgets what is remembered under a caller's id.
    pub fn restore_caller_id(&mut self, number: u32, id: String, known: Option<Remembered>) {
        self.set_caller_id(number, id, known);
    }

    /// As [`State::restore_caller_id`]; returns what was remembered before. What
    /// is remembered takes its part of the store's room.
    pub(super) fn set_caller_id(
        &mut self,
        number: u32,
        id: String,
        known: Option<Remembered>,
    ) -> Option<Remembered> {
        let queue = self.queues.get_mut(&number)?;
        let size = id_bytes(&id);
        let before = match known {
            Some(known) => {
                self.bytes += size;
                queue.ids.insert(id, known)
            }
            None => queue.ids.remove(&id),
        };
        if before.is_some() {
            self.bytes -= size;
        }
        before
    }

    /// A schedule by its name.
    #[must_use]
    pub fn schedule(&self, name: &ScheduleName) -> Option<&Schedule> {
        self.schedules.get(name)
    }

    /// All schedules, by name.
    pub fn all_schedules(&self) -> impl Iterator<Item = &Schedule> {
        self.schedules.values()
    }

    /// Puts a schedule back.
    pub fn restore_schedule(&mut self, schedule: Schedule) {
        self.schedules.insert(schedule.declared.name.clone(), schedule);
    }

    /// Deletes a schedule; returns whether there was one.
    pub fn remove_schedule(&mut self, name: &ScheduleName) -> bool {
        self.schedules.remove(name).is_some()
    }
}
