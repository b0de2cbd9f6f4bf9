//! How many tasks a claim may take where a queue limits what runs at once: of the
//! queue as a whole, and of each of its groups.

use std::collections::HashMap;

use super::rate::Bucket;
use crate::{Per, Settings, Timestamp};

/// How many more tasks may be under lease beside those that are.
///
/// A lease that ran out and was not taken back counts: its worker may be running.
#[must_use]
pub fn free(limit: u32, leased: u64) -> u64 {
    u64::from(limit).saturating_sub(leased)
}

/// How many tasks a claim may take of the queue as a whole, of those it asks for.
/// `leased` says how many are under lease and `full_at` when the bucket is full; each is
/// asked only where that matters.
///
/// # Errors
/// What these say.
pub fn of_queue<E>(
    asked: usize,
    settings: &Settings,
    now: Timestamp,
    leased: impl FnOnce() -> Result<u64, E>,
    full_at: impl FnOnce() -> Result<Option<Timestamp>, E>,
) -> Result<usize, E> {
    let mut most = asked;
    if let (Some(limit), Per::Queue) = (settings.concurrency, settings.concurrency_per) {
        most = most.min(usize::try_from(free(limit, leased()?)).unwrap_or(usize::MAX));
    }
    if let (Some(bucket), Per::Queue) = (Bucket::of(settings), settings.rate_per) {
        most = most.min(usize::try_from(bucket.tokens(full_at()?, now)).unwrap_or(usize::MAX));
    }
    Ok(most)
}

/// How many more tasks of a group may be claimed, before this claim. Asked as
/// [`of_queue`].
///
/// # Errors
/// What these say.
pub fn of_group<E>(
    settings: &Settings,
    now: Timestamp,
    leased: impl FnOnce() -> Result<u64, E>,
    full_at: impl FnOnce() -> Result<Option<Timestamp>, E>,
) -> Result<u64, E> {
    let mut most = u64::MAX;
    if let (Some(limit), Per::Group) = (settings.concurrency, settings.concurrency_per) {
        most = most.min(free(limit, leased()?));
    }
    if let (Some(bucket), Per::Group) = (Bucket::of(settings), settings.rate_per) {
        most = most.min(bucket.tokens(full_at()?, now));
    }
    Ok(most)
}

/// What a claim may still take of each group it comes by.
#[derive(Debug, Default)]
pub struct Rooms {
    left: HashMap<String, u64>,
}

impl Rooms {
    /// Whether a group has room for one more. `free` says how many it has room for
    /// before this claim, and is asked once a group.
    ///
    /// # Errors
    /// What `free` says.
    pub fn has<E>(
        &mut self,
        group: &str,
        free: impl FnOnce() -> Result<u64, E>,
    ) -> Result<bool, E> {
        if let Some(left) = self.left.get(group) {
            return Ok(*left > 0);
        }
        let free = free()?;
        self.left.insert(group.to_owned(), free);
        Ok(free > 0)
    }

    /// The claim takes one task of the group.
    pub fn take(&mut self, group: &str) {
        if let Some(left) = self.left.get_mut(group) {
            *left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;
    use std::convert::Infallible;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    #[test]
    fn what_is_under_lease_is_not_free() {
        assert_eq!((free(3, 0), free(3, 2), free(3, 3), free(3, 9)), (3, 1, 0, 0));
    }

    #[test]
    fn each_limit_cuts_what_it_is_of() {
        let mut settings = Settings::default();
        let (leased, full_at) = (|| Ok::<_, Infallible>(4), || Ok(Some(NOW)));
        let take = |settings: &Settings| {
            let Ok(queue) = of_queue(10, settings, NOW, leased, full_at);
            let Ok(group) = of_group(settings, NOW, leased, full_at);
            (queue, group)
        };
        assert_eq!(take(&settings), (10, u64::MAX));
        settings.concurrency = Some(7);
        assert_eq!(take(&settings), (3, u64::MAX));
        settings.concurrency = Some(2);
        assert_eq!(take(&settings), (0, u64::MAX));
        settings.concurrency_per = Per::Group;
        assert_eq!(take(&settings), (10, 0));
        settings.concurrency = None;
        settings.rate = Some(Rate::new(2, Duration::from_secs(1)));
        assert_eq!(take(&settings), (2, u64::MAX));
        settings.burst = Some(8);
        settings.rate_per = Per::Group;
        assert_eq!(take(&settings), (10, 8));
        settings.concurrency = Some(5);
        assert_eq!(take(&settings), (10, 1));
    }

    #[test]
    fn a_group_has_room_until_its_last_place_is_taken() {
        let (mut rooms, asked) = (Rooms::default(), || Ok::<u64, &str>(2));
        let again = || Err("it is asked once");
        assert_eq!(rooms.has("a", asked), Ok(true));
        rooms.take("a");
        assert_eq!(rooms.has("a", again), Ok(true));
        rooms.take("a");
        assert_eq!(rooms.has("a", again), Ok(false));
        assert_eq!(
            (rooms.has("b", || Ok::<_, &str>(0)), rooms.has("c", again)),
            (Ok(false), again().map(|n: u64| n > 0))
        );
    }
}
