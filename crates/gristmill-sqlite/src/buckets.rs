//! The buckets of queues that have a rate: what claims take from them, and what comes
//! back.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_core::policy::rate::{Bucket, bucket_of};
use gristmill_core::{Per, Queue, Result, Timestamp};

use crate::pick::Picked;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// When a bucket is full; nothing when it is.
    pub(crate) fn bucket(&self, queue: &Queue, group: &str) -> Result<Option<Timestamp>> {
        let full_at = self.db.one(
            Sql::BucketGet,
            bind!(BucketGet { queue: queue.number, grp: group }),
            |row| row.get(at!(BucketGet.full_at)),
        )?;
        Ok(full_at.map(Timestamp::from_micros))
    }

    fn set_bucket(&self, queue: &Queue, group: &str, full_at: Timestamp) -> Result<()> {
        let full_at = full_at.as_micros();
        self.db
            .run(Sql::BucketSet, bind!(BucketSet { queue: queue.number, grp: group, full_at }))
            .map(drop)
    }

    /// Takes a token for each of these tasks.
    pub(crate) fn take_tokens(&self, queue: &Queue, picked: &[Picked]) -> Result<()> {
        let Some(bucket) = Bucket::of(&queue.settings) else {
            return Ok(());
        };
        let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
        for one in picked {
            let group = bucket_of(&queue.settings, one.task.group.as_deref());
            *taken.entry(group).or_default() += 1;
        }
        for (group, tokens) in taken {
            let full_at = bucket.take(self.bucket(queue, group)?, tokens, self.now);
            self.set_bucket(queue, group, full_at)?;
        }
        Ok(())
    }

    /// Gives back the token of a task that never started.
    pub(crate) fn give_token_back(&self, queue: &Queue, group: Option<&str>) -> Result<()> {
        let Some(bucket) = Bucket::of(&queue.settings) else {
            return Ok(());
        };
        let group = bucket_of(&queue.settings, group);
        match self.bucket(queue, group)? {
            Some(full_at) => self.set_bucket(queue, group, bucket.give_back(full_at)),
            None => Ok(()),
        }
    }

    /// A group's bucket that is full after the first of these instants, and not after the
    /// second, is empty; nothing where groups have none of their own.
    pub(crate) fn empty_between(&self, queue: &Queue) -> Option<(i64, i64)> {
        let per_group = queue.settings.rate_per == Per::Group;
        let bucket = Bucket::of(&queue.settings).filter(|_| per_group)?;
        Some((bucket.open_until(self.now).as_micros(), bucket.latest(self.now).as_micros()))
    }

    /// How long until a task that is due finds a token, where it is only that which
    /// keeps it.
    pub(crate) fn refill(&self, queue: &Queue, source: Option<&str>) -> Result<Option<Duration>> {
        let Some(bucket) = Bucket::of(&queue.settings) else {
            return Ok(None);
        };
        let per_group = queue.settings.rate_per == Per::Group;
        let mut buckets =
            self.db.all(Sql::BucketAll, bind!(BucketAll { queue: queue.number }), |row| {
                let full_at = Timestamp::from_micros(row.get(at!(BucketAll.full_at))?);
                Ok((row.get::<_, String>(at!(BucketAll.grp))?, full_at))
            })?;
        // The first to be filled first.
        buckets.sort_unstable_by_key(|(_, full_at)| *full_at);
        for (group, full_at) in buckets {
            let is_its_own = per_group || group.is_empty();
            if !is_its_own || bucket.tokens(Some(full_at), self.now) > 0 {
                continue;
            }
            let is_due = if per_group {
                self.next_of_group(queue, &group, source, None)?.is_some()
            } else {
                self.any_due(queue, source)?
            };
            // The others are not asked, however many there are: they are filled later.
            if is_due {
                return Ok(Some(bucket.wait(Some(full_at), self.now)));
            }
        }
        Ok(None)
    }

    /// Whether anything is due.
    fn any_due(&self, queue: &Queue, source: Option<&str>) -> Result<bool> {
        let mut any = false;
        self.each_level(queue, source, |level| {
            any = !self.front(queue, source, level, 1)?.is_empty();
            Ok(any)
        })?;
        Ok(any)
    }

    /// No bucket takes longer to fill than from empty: a clock that was ahead said so.
    pub(crate) fn clamp_buckets(&self, queue: &Queue) -> Result<()> {
        if let Some(bucket) = Bucket::of(&queue.settings) {
            let latest = bucket.latest(self.now).as_micros();
            self.db.run(Sql::BucketClamp, bind!(BucketClamp { latest, queue: queue.number }))?;
        }
        Ok(())
    }
}
