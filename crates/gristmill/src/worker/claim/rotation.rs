//! Which queues a processor serves, and in which order: it goes round, one
//! batch from each (more from those with more weight), so that none starves.

use std::sync::Arc;

use gristmill_core::QueueName;
use tokio::sync::Mutex;

use crate::worker::claim::served::Served;
use crate::worker::control::shared::Shared;

/// Where a processor stands.
pub(crate) enum Post {
    /// It goes round all queues.
    Rotation,
    /// It serves one: it was moved there by hand or by the manager, or the
    /// queue wants a minimum.
    Queue(Arc<Served>),
}

impl Post {
    /// The post of a processor by its number. The last one always rotates, so
    /// that no queue is forgotten for another one's minimum.
    pub(crate) fn of(shared: &Shared, number: usize) -> Self {
        let (moved, count, follows) = {
            let wish = shared.wish.borrow();
            let moved = wish.moved_to(number).or_else(|| wish.assigned.get(&number));
            (moved.cloned(), wish.processors, wish.follows.is_some())
        };
        if let Some(name) = moved {
            let served = shared.served.iter().find(|served| served.name == name && served.is_on());
            return served.cloned().map_or(Post::Rotation, Post::Queue);
        }
        if follows {
            // The manager keeps the minima, over all workers.
            return Post::Rotation;
        }
        let mut taken = 0usize;
        for served in shared.served.iter().filter(|served| served.is_on()) {
            let queue = shared.queues.last(&served.name);
            taken += queue.map_or(0, |queue| queue.settings.processors_min as usize);
            if number < taken && number + 1 < count {
                return Post::Queue(served.clone());
            }
        }
        Post::Rotation
    }

    /// The one queue it serves.
    pub(crate) fn name(&self) -> Option<QueueName> {
        match self {
            Post::Rotation => None,
            Post::Queue(served) => Some(served.name.clone()),
        }
    }

    /// The lock that the one idle processor of this post holds that looks for
    /// work.
    pub(crate) fn scout<'a>(&'a self, shared: &'a Shared) -> &'a Mutex<()> {
        match self {
            Post::Rotation => &shared.scout,
            Post::Queue(served) => &served.scout,
        }
    }

    /// The queues it serves.
    pub(crate) fn queues(&self, shared: &Shared) -> Vec<Arc<Served>> {
        match self {
            Post::Rotation => shared.served.iter().filter(|s| s.is_on()).cloned().collect(),
            Post::Queue(served) => vec![served.clone()],
        }
    }

    /// One rotation: every queue once, those of more weight again after that.
    pub(crate) fn order(&self, shared: &Shared) -> Vec<Arc<Served>> {
        let queues = self.queues(shared);
        let weights: Vec<u32> = queues
            .iter()
            .map(|served| {
                let known = shared.queues.last(&served.name);
                known.map_or(1, |queue| queue.settings.processors_weight.clamp(1, 100))
            })
            .collect();
        by_weight(&queues, &weights)
    }
}

/// Interleaved, so that a heavy queue does not take its turns in a row while
/// others wait.
fn by_weight<T: Clone>(queues: &[T], weights: &[u32]) -> Vec<T> {
    let rounds = weights.iter().copied().max().unwrap_or(0);
    (0..rounds)
        .flat_map(|round| {
            let turn = queues.iter().zip(weights).filter(move |(_, weight)| **weight > round);
            turn.map(|(queue, _)| queue.clone())
        })
        .collect()
}

/// A processor's place in the rotation.
#[derive(Debug)]
pub(crate) struct Turns(usize);

impl Turns {
    pub(crate) const fn from(first: usize) -> Self {
        Turns(first)
    }

    /// The queue whose turn it is; the next call gives the one after it.
    pub(crate) fn next<'a, T>(&mut self, order: &'a [T]) -> Option<&'a T> {
        let turn = order.get(self.0.checked_rem(order.len())?);
        self.0 = self.0.wrapping_add(1);
        turn
    }

    /// The last turn was not used.
    pub(crate) fn back(&mut self) {
        self.0 = self.0.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_has_every_queue_and_the_heavy_ones_again() {
        assert_eq!(by_weight(&["a", "b", "c"], &[1, 3, 2]), ["a", "b", "c", "b", "c", "b"]);
        assert!(by_weight::<&str>(&[], &[]).is_empty());
    }

    #[test]
    fn turns_go_on_where_they_stopped() {
        let order = ["a", "b", "c"];
        let mut turns = Turns::from(4);
        assert_eq!((turns.next(&order), turns.next(&order)), (Some(&"b"), Some(&"c")));
        turns.back();
        assert_eq!(turns.next(&order), Some(&"c"));
        assert_eq!(turns.next::<u8>(&[]), None);
    }
}
