//! Where claims of this process left off in each priority, so that the next one
//! does not walk again over the dead entries in front.
//!
//! A hint is only that: what stands behind it is found by a look from the
//! front. While that costs little, a claim makes it: every so often, and when it
//! finds too little. Where a held snapshot keeps the dead entries there it is
//! dear; then it is made beside the claims, which go on meanwhile, and what it
//! finds moves the hint back.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::{QueueName, Timestamp};

/// A look from the front is due after this long.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// A look that took longer is dear: it would show in the times of claims.
const DEAR: Duration = Duration::from_micros(1_500);
/// Beyond this not even a claim that found too little makes it at once.
const SLOW: Duration = Duration::from_millis(10);
/// A dear look may take this part of the time.
const SHARE: u32 = 20;
/// A claim's lease may become visible so much later than it began. One that is
/// even later is found by the sweep.
const LATE: Duration = Duration::from_secs(1);
/// Levels that are remembered. A claim asks for each of them, so it is not for
/// queues that use priorities as times.
const LEVELS: usize = 8;

/// Where the last claim of a level ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) level: i16,
    pub(crate) run_at: Timestamp,
    pub(crate) id: i64,
}

/// How a claim begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begin {
    /// After these places, the most urgent level first; levels without one
    /// from the front.
    pub(crate) hints: Vec<Hint>,
    /// Whether to look from the front if that gives too little.
    pub(crate) sweep: bool,
    /// Leases that ran out before this were all taken back.
    pub(crate) clean: Option<Timestamp>,
}

impl Begin {
    /// Of a claim of which nothing is known.
    pub(crate) const fn front() -> Begin {
        Begin { hints: Vec::new(), sweep: true, clean: None }
    }
}

/// How a claim ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    /// At its last task of each level it took some from.
    pub(crate) hints: Vec<Hint>,
    /// It looked from the front: it was told so, or leases had run out.
    pub(crate) front: bool,
    /// What its look from the front took.
    pub(crate) swept: Option<Duration>,
    /// No lease had run out at this time.
    pub(crate) clean: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Known {
    /// By level, the most urgent first.
    places: BTreeMap<i16, Place>,
    /// Counts claims, to tell which level was not claimed from for longest.
    claims: u64,
    /// When the front was last looked at, and what that took. Of the first look
    /// nothing is known: it was as long as the server took to plan it.
    looked: Duration,
    took: Duration,
    has_looked: bool,
    /// A look beside the claims is under way.
    looking: bool,
    clean: Option<Timestamp>,
}

/// Where the last claim of a level ended, and which claim that was.
#[derive(Debug)]
struct Place {
    run_at: Timestamp,
    id: i64,
    claim: u64,
}

impl Known {
    fn hints(&self) -> Vec<Hint> {
        let hint = |(level, place): (&i16, &Place)| Hint {
            level: *level,
            run_at: place.run_at,
            id: place.id,
        };
        self.places.iter().map(hint).collect()
    }

    fn ended(&mut self, hints: Vec<Hint>, front: bool) {
        self.claims += 1;
        if front && let Some(last) = hints.last() {
            // What came back to less urgent levels was not looked at, and the
            // next claim may be the one to come there.
            self.places.retain(|level, _| *level <= last.level);
        }
        for Hint { level, run_at, id } in hints {
            self.places.insert(level, Place { run_at, id, claim: self.claims });
        }
        while self.places.len() > LEVELS {
            let oldest = self.places.iter().min_by_key(|(_, place)| place.claim);
            let Some(level) = oldest.map(|(level, _)| *level) else { return };
            self.places.remove(&level);
        }
    }

    fn is_dear(&self) -> bool {
        self.took >= DEAR && !self.places.is_empty()
    }

    fn is_affordable(&self, now: Duration) -> bool {
        now.saturating_sub(self.looked) >= self.took.saturating_mul(SHARE)
    }

    fn looked(&mut self, took: Duration, now: Duration) {
        let took = if self.has_looked { took } else { Duration::ZERO };
        (self.looked, self.took, self.has_looked) = (now, took, true);
    }
}

/// The hints of all queues.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    queues: Mutex<HashMap<QueueName, Known>>,
}

impl Hints {
    /// Where a claim begins.
    pub(crate) fn begin(&self, queue: &QueueName, now: Duration) -> Begin {
        let queues = self.lock();
        let Some(known) = queues.get(queue) else {
            return Begin::front();
        };
        let dear = known.is_dear();
        let due = now.saturating_sub(known.looked) >= EVERY;
        if known.places.is_empty() || (due && !dear) {
            return Begin::front();
        }
        let sweep = known.took < SLOW || known.is_affordable(now);
        let clean = known.clean.map(|clean| clean.before(LATE));
        Begin { hints: known.hints(), sweep, clean }
    }

    /// A claim ended. Says where looks beside the claims are to end, when they
    /// are due: whoever is told makes them, and tells [`Hints::found`].
    pub(crate) fn ended(
        &self,
        queue: &QueueName,
        ended: Ended,
        now: Duration,
    ) -> Option<Vec<Hint>> {
        let mut queues = self.lock();
        let known = queues.entry(queue.clone()).or_default();
        known.ended(ended.hints, ended.front);
        if ended.clean.is_some() {
            known.clean = ended.clean;
        }
        if let Some(took) = ended.swept {
            known.looked(took, now);
        }
        let due = now.saturating_sub(known.looked) >= EVERY && known.is_affordable(now);
        if !known.is_dear() || known.looking || !due {
            return None;
        }
        known.looking = true;
        Some(known.hints())
    }

    /// Looks beside the claims took so long and found these tasks. Claims go on
    /// before them, and come by all that stands behind them.
    pub(crate) fn found(&self, queue: &QueueName, places: &[Hint], took: Duration, now: Duration) {
        let mut queues = self.lock();
        let known = queues.entry(queue.clone()).or_default();
        known.looking = false;
        known.looked(took, now);
        for found in places {
            // Only ever back: what was forgotten or moved further back meanwhile
            // has its own reason.
            if let Some(place) = known.places.get_mut(&found.level)
                && (found.run_at, found.id) <= (place.run_at, place.id)
            {
                (place.run_at, place.id) = (found.run_at, found.id.saturating_sub(1));
            }
        }
    }

    /// This process put something behind a hint.
    pub(crate) fn forget(&self, queue: &QueueName) {
        if let Some(known) = self.lock().get_mut(queue) {
            known.places.clear();
        }
    }

    /// Something came back that falls due then: places at or behind that time would
    /// pass it by.
    pub(crate) fn forget_past(&self, queue: &QueueName, run_at: Timestamp) {
        if let Some(known) = self.lock().get_mut(queue)
            && known.places.values().any(|place| place.run_at >= run_at)
        {
            known.places.clear();
        }
    }

    /// This process may have put something behind any hint.
    pub(crate) fn forget_all(&self) {
        for known in self.lock().values_mut() {
            known.places.clear();
        }
    }

    /// The clock went back: what is known lies ahead of it.
    pub(crate) fn forget_times(&self) {
        for known in self.lock().values_mut() {
            known.places.clear();
            known.clean = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Known>> {
        // Plain numbers are valid whatever a panicking holder did.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn queue() -> QueueName {
        QueueName::new("q").expect("a name")
    }

    fn hint(id: i64) -> Vec<Hint> {
        vec![Hint { level: 0, run_at: Timestamp::EPOCH, id }]
    }

    fn at(id: i64, swept: Option<Duration>) -> Ended {
        Ended { hints: hint(id), front: false, swept, clean: None }
    }

    #[test]
    fn the_front_is_looked_at_ten_times_a_second() {
        let hints = Hints::default();
        assert_eq!(hints.begin(&queue(), MS), Begin::front());
        assert_eq!(hints.ended(&queue(), at(7, Some(MS)), MS), None);
        let begin = Begin { hints: hint(7), sweep: true, clean: None };
        assert_eq!(hints.begin(&queue(), 2 * MS), begin);
        assert_eq!(hints.begin(&queue(), 102 * MS), Begin::front());
        hints.forget(&queue());
        assert_eq!(hints.begin(&queue(), 2 * MS), Begin::front());
    }

    #[test]
    fn a_dear_look_is_made_beside_the_claims_for_a_twentieth_of_the_time() {
        let hints = Hints::default();
        assert_eq!(hints.ended(&queue(), at(6, Some(50 * MS)), Duration::ZERO), None);
        assert_eq!(hints.begin(&queue(), 100 * MS), Begin::front(), "the first one says nothing");
        assert_eq!(hints.ended(&queue(), at(7, Some(50 * MS)), MS), None);
        let begin = Begin { hints: hint(7), sweep: false, clean: None };
        assert_eq!(hints.begin(&queue(), 500 * MS), begin);
        assert_eq!(hints.ended(&queue(), at(8, None), 500 * MS), None);
        assert_eq!(hints.begin(&queue(), 1_002 * MS).hints, hint(8), "no claim makes it");
        assert_eq!(hints.ended(&queue(), at(9, None), 1_002 * MS), Some(hint(9)));
        assert_eq!(hints.ended(&queue(), at(10, None), 1_003 * MS), None, "it is being made");
        hints.found(&queue(), &hint(3), 60 * MS, 1_060 * MS);
        assert_eq!(hints.begin(&queue(), 1_061 * MS).hints, hint(2), "the one before it");
        assert_eq!(hints.ended(&queue(), at(20, None), 2_300 * MS), Some(hint(20)));
        hints.found(&queue(), &hint(30), 60 * MS, 2_360 * MS);
        assert_eq!(hints.begin(&queue(), 2_361 * MS).hints, hint(20), "never forward");
        assert_eq!(hints.ended(&queue(), at(21, None), 4_000 * MS), Some(hint(21)));
        hints.found(&queue(), &[], MS, 4_001 * MS);
        assert_eq!(hints.begin(&queue(), 4_101 * MS), Begin::front(), "it is cheap again");
    }

    #[test]
    fn every_level_has_its_place_up_to_eight_of_them() {
        let hints = Hints::default();
        let level = |level, id| Hint { level, run_at: Timestamp::EPOCH, id };
        let ended = |places: Vec<Hint>| {
            let ended = Ended { hints: places, front: false, swept: Some(MS), clean: None };
            hints.ended(&queue(), ended, MS);
        };
        ended(vec![level(-5, 3), level(0, 9)]);
        ended(vec![level(0, 12)]);
        assert_eq!(hints.begin(&queue(), MS).hints, [level(-5, 3), level(0, 12)]);
        hints.found(&queue(), &[level(-5, 2), level(4, 1)], MS, MS);
        assert_eq!(hints.begin(&queue(), MS).hints, [level(-5, 1), level(0, 12)]);
        for other in 1..=7 {
            ended(vec![level(other, 1)]);
        }
        let levels: Vec<i16> = hints.begin(&queue(), MS).hints.iter().map(|h| h.level).collect();
        assert_eq!(levels, [0, 1, 2, 3, 4, 5, 6, 7], "the one claimed longest ago is forgotten");
    }

    #[test]
    fn a_look_from_the_front_forgets_the_levels_it_did_not_reach() {
        let hints = Hints::default();
        let level = |level, id| Hint { level, run_at: Timestamp::EPOCH, id };
        let ended = |places: Vec<Hint>, front| {
            hints.ended(&queue(), Ended { hints: places, front, swept: None, clean: None }, MS);
            hints.begin(&queue(), MS).hints
        };
        ended(vec![level(-5, 3), level(0, 9), level(4, 1)], false);
        assert_eq!(ended(vec![level(0, 10)], true), [level(-5, 3), level(0, 10)]);
        assert_eq!(ended(Vec::new(), true), [level(-5, 3), level(0, 10)], "it reached them all");
        assert_eq!(ended(vec![level(-5, 4)], false), [level(-5, 4), level(0, 10)]);
    }

    #[test]
    fn what_comes_back_behind_the_place_leaves_it_where_it_is() {
        let hints = Hints::default();
        hints.ended(&queue(), at(7, Some(MS)), MS);
        hints.forget_past(&queue(), Timestamp::EPOCH.after(MS));
        assert_eq!(hints.begin(&queue(), MS).hints, hint(7));
        hints.forget_past(&queue(), Timestamp::EPOCH);
        assert_eq!(hints.begin(&queue(), MS), Begin::front());
    }

    #[test]
    fn nothing_is_known_once_the_clock_went_back() {
        let hints = Hints::default();
        let clean = Some(Timestamp::EPOCH.after(60_000 * MS));
        let ended = |clean| Ended { hints: hint(7), front: false, swept: Some(MS), clean };
        hints.ended(&queue(), ended(clean), MS);
        hints.forget_times();
        assert_eq!(hints.begin(&queue(), MS), Begin::front());
        hints.ended(&queue(), ended(None), MS);
        assert_eq!(hints.begin(&queue(), MS).clean, None, "leases run out before that time");
    }

    #[test]
    fn leases_that_were_taken_back_are_not_looked_for_again() {
        let hints = Hints::default();
        let clean = Some(Timestamp::EPOCH.after(LATE));
        let ended = Ended { clean, ..at(7, Some(MS)) };
        hints.ended(&queue(), ended, MS);
        hints.ended(&queue(), at(8, None), MS);
        assert_eq!(hints.begin(&queue(), 2 * MS).clean, Some(Timestamp::EPOCH));
    }
}
