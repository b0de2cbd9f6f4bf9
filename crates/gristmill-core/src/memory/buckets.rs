//! The buckets of queues that have a rate: what claims take from them, and what comes
//! back.

use std::collections::BTreeMap;
use std::time::Duration;

use super::pick::lane_of;
use super::state::State;
use crate::policy::rate::{Bucket, bucket_of};
use crate::{Per, Settings, Timestamp};

impl State {
    /// When a bucket is full; nothing when it is.
    #[must_use]
    pub fn bucket(&self, number: u32, group: &str) -> Option<Timestamp> {
        self.queues.get(&number)?.buckets.get(group).copied()
    }

    /// All buckets of a queue that are not known to be full.
    pub fn all_buckets(&self, number: u32) -> impl Iterator<Item = (&str, Timestamp)> {
        let queue = self.queues.get(&number);
        let buckets = queue.into_iter().flat_map(|queue| queue.buckets.iter());
        buckets.map(|(group, full_at)| (group.as_str(), *full_at))
    }

    /// Sets when a bucket is full.
    pub fn restore_bucket(&mut self, number: u32, group: String, full_at: Option<Timestamp>) {
        let Some(queue) = self.queues.derived_mut(&number) else {
            return;
        };
        match full_at {
            Some(full_at) => queue.buckets.insert(group, full_at),
            None => queue.buckets.remove(&group),
        };
    }

    fn set_bucket(&mut self, number: u32, group: &str, full_at: Option<Timestamp>) {
        self.restore_bucket(number, group.to_owned(), full_at);
        self.note(|changes| changes.buckets.push((number, group.to_owned())));
    }

    /// Takes a token for each of these tasks.
    pub(super) fn take_tokens(
        &mut self,
        number: u32,
        settings: &Settings,
        ids: &[i64],
        now: Timestamp,
    ) {
        let Some(bucket) = Bucket::of(settings) else {
            return;
        };
        let mut taken: BTreeMap<String, u64> = BTreeMap::new();
        for row in ids.iter().filter_map(|id| self.rows.get(id)) {
            let group = bucket_of(settings, row.task.group.as_deref());
            *taken.entry(group.to_owned()).or_default() += 1;
        }
        for (group, tokens) in taken {
            let full_at = bucket.take(self.bucket(number, &group), tokens, now);
            self.set_bucket(number, &group, Some(full_at));
        }
    }

    /// Gives back the token of a task that never started.
    pub(super) fn give_token_back(&mut self, number: u32, settings: &Settings, id: i64) {
        let Some((bucket, row)) = Bucket::of(settings).zip(self.rows.get(&id)) else {
            return;
        };
        let group = bucket_of(settings, row.task.group.as_deref()).to_owned();
        if let Some(full_at) = self.bucket(number, &group) {
            self.set_bucket(number, &group, Some(bucket.give_back(full_at)));
        }
    }

    /// How long until a task that is due finds a token, where it is only that which
    /// keeps it.
    pub(super) fn refill(
        &self,
        number: u32,
        source: Option<&str>,
        now: Timestamp,
    ) -> Option<Duration> {
        let queue = self.queues.get(&number)?;
        let settings = &queue.queue.settings;
        let bucket = Bucket::of(settings)?;
        let is_due = |group: &str| match settings.rate_per {
            Per::Queue => lane_of(queue, source).is_some_and(|lane| lane.due(now).next().is_some()),
            Per::Group => queue.by_group.get(group).is_some_and(|lane| {
                lane.due(now).any(|(_, _, id)| {
                    source.is_none()
                        || self.rows.get(&id).is_some_and(|r| r.task.source.as_deref() == source)
                })
            }),
        };
        let empty = queue.buckets.iter().filter(|(group, full_at)| {
            (settings.rate_per == Per::Group || group.is_empty())
                && bucket.tokens(Some(**full_at), now) == 0
        });
        // The first to be filled of those in which something is due: the others are not
        // asked, however many there are.
        let mut empty: Vec<(Timestamp, &String)> =
            empty.map(|(group, full_at)| (*full_at, group)).collect();
        empty.sort_unstable();
        let next = empty.into_iter().find(|(_, group)| is_due(group));
        next.map(|(full_at, _)| bucket.wait(Some(full_at), now))
    }

    /// Forgets buckets that are full again.
    pub(super) fn forget_buckets(&mut self, now: Timestamp) {
        for queue in self.queues.all_derived_mut() {
            let number = queue.queue.number;
            queue.buckets.retain(|group, full_at| {
                let kept = *full_at > now;
                if let (false, Some(changes)) = (kept, &mut self.changes) {
                    changes.buckets.push((number, group.clone()));
                }
                kept
            });
        }
    }

    /// No bucket takes longer to fill than from empty: a clock that was ahead said so.
    pub(super) fn clamp_buckets(&mut self, now: Timestamp) {
        for queue in self.queues.all_derived_mut() {
            let Some(bucket) = Bucket::of(&queue.queue.settings) else { continue };
            let (number, latest) = (queue.queue.number, bucket.latest(now));
            for (group, full_at) in &mut queue.buckets {
                if *full_at > latest {
                    *full_at = latest;
                    if let Some(changes) = &mut self.changes {
                        changes.buckets.push((number, group.clone()));
                    }
                }
            }
        }
    }
}
