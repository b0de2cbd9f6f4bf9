//! How many tasks a claim may take where a queue limits what runs at once: of the
//! queue as a whole, and of each of its groups.

use std::collections::HashMap;

use crate::{Per, Settings};

/// How many more tasks may be under lease beside those that are.
///
/// A lease that ran out and was not taken back counts: its worker may be running.
#[must_use]
pub fn free(limit: u32, leased: u64) -> u64 {
    u64::from(limit).saturating_sub(leased)
}

/// How many tasks a claim may take of the queue as a whole, of those it asks for.
/// `leased` says how many are under lease, and is asked only where that matters.
///
/// # Errors
/// What `leased` says.
pub fn of_queue<E>(
    asked: usize,
    settings: &Settings,
    leased: impl FnOnce() -> Result<u64, E>,
) -> Result<usize, E> {
    match (settings.concurrency, settings.concurrency_per) {
        (Some(limit), Per::Queue) => {
            Ok(usize::try_from(free(limit, leased()?)).unwrap_or(usize::MAX).min(asked))
        }
        _ => Ok(asked),
    }
}

/// What a claim may still take of each group it comes by.
#[derive(Debug, Default)]
pub struct Rooms {
    left: HashMap<String, u64>,
}

impl Rooms {
    /// Whether a group has room for one more. `free` says how many it has room for
    /// before this claim, and is asked once a group.
    pub fn has(&mut self, group: &str, free: impl FnOnce() -> u64) -> bool {
        match self.left.get(group) {
            Some(left) => *left > 0,
            None => {
                let free = free();
                self.left.insert(group.to_owned(), free);
                free > 0
            }
        }
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
    use std::convert::Infallible;

    #[test]
    fn what_is_under_lease_is_not_free() {
        assert_eq!((free(3, 0), free(3, 2), free(3, 3), free(3, 9)), (3, 1, 0, 0));
    }

    #[test]
    fn only_a_limit_of_the_whole_queue_cuts_the_claim() {
        let mut settings = Settings::default();
        let take = |settings: &Settings| of_queue(10, settings, || Ok::<_, Infallible>(4));
        assert_eq!(take(&settings), Ok(10));
        settings.concurrency = Some(7);
        assert_eq!(take(&settings), Ok(3));
        settings.concurrency = Some(2);
        assert_eq!(take(&settings), Ok(0));
        settings.concurrency_per = Per::Group;
        assert_eq!(take(&settings), Ok(10));
    }

    #[test]
    fn a_group_has_room_until_its_last_place_is_taken() {
        let mut rooms = Rooms::default();
        assert!(rooms.has("a", || 2));
        rooms.take("a");
        assert!(rooms.has("a", || unreachable!("it is asked once")));
        rooms.take("a");
        assert!(!rooms.has("a", || unreachable!("it is asked once")));
        assert!(rooms.has("b", || 1) && !rooms.has("c", || 0));
    }
}
