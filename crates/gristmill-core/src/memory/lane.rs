//! Pending tasks in claim order: by priority, then `run_at`, then id.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::Timestamp;

/// A task's place in the claim order.
pub(super) type Entry = (i16, Timestamp, i64);

/// One ordered lane. A level a priority, so that a million tasks that are
/// ahead at an urgent priority cost one look, not a million.
#[derive(Debug, Default, Clone)]
pub(super) struct Lane {
    levels: BTreeMap<i16, BTreeSet<(Timestamp, i64)>>,
}

impl Lane {
    pub(super) fn insert(&mut self, (priority, run_at, id): Entry) {
        self.levels.entry(priority).or_default().insert((run_at, id));
    }

    pub(super) fn remove(&mut self, (priority, run_at, id): Entry) -> bool {
        let Some(level) = self.levels.get_mut(&priority) else {
            return false;
        };
        let found = level.remove(&(run_at, id));
        if level.is_empty() {
            self.levels.remove(&priority);
        }
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Tasks due at `now`, in claim order.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = Entry> {
        self.levels.iter().flat_map(move |(priority, level)| {
            level
                .iter()
                .take_while(move |(run_at, _)| *run_at <= now)
                .map(|(run_at, id)| (*priority, *run_at, *id))
        })
    }

    /// Tasks due at `now` that come behind this place, in claim order.
    pub(super) fn due_after(
        &self,
        now: Timestamp,
        (priority, run_at, id): Entry,
    ) -> impl Iterator<Item = Entry> {
        self.levels.range(priority..).flat_map(move |(level, tasks)| {
            let from = match *level == priority {
                true => Bound::Excluded((run_at, id)),
                false => Bound::Unbounded,
            };
            tasks
                .range((from, Bound::Unbounded))
                .take_while(move |(run_at, _)| *run_at <= now)
                .map(|(run_at, id)| (*level, *run_at, *id))
        })
    }

    /// The first task of one priority that is due at `now` and comes behind a place.
    pub(super) fn next_in_level(
        &self,
        priority: i16,
        behind: Option<Entry>,
        now: Timestamp,
    ) -> impl Iterator<Item = Entry> {
        let from = match behind {
            Some((_, run_at, id)) => Bound::Excluded((run_at, id)),
            None => Bound::Unbounded,
        };
        self.levels.get(&priority).into_iter().flat_map(move |level| {
            level
                .range((from, Bound::Unbounded))
                .take_while(move |(run_at, _)| *run_at <= now)
                .map(move |(run_at, id)| (priority, *run_at, *id))
        })
    }

    /// Every priority, the most urgent first.
    pub(super) fn levels(&self) -> impl Iterator<Item = i16> {
        self.levels.keys().copied()
    }

    /// Tasks that are not due at `now`.
    pub(super) fn ahead(&self, now: Timestamp) -> impl Iterator<Item = i64> {
        let levels = self.levels.values();
        levels.flat_map(move |level| level.range((now, i64::MAX)..).map(|(_, id)| *id))
    }

    /// When the next task after `now` falls due.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.levels
            .values()
            .filter_map(|level| level.range((now, i64::MAX)..).next())
            .map(|(run_at, _)| *run_at)
            .min()
    }

    /// When the oldest task that is due at `now` fell due.
    pub(super) fn oldest_due(&self, now: Timestamp) -> Option<Timestamp> {
        self.levels
            .values()
            .filter_map(|level| level.first())
            .map(|(run_at, _)| *run_at)
            .filter(|run_at| *run_at <= now)
            .min()
    }
}
