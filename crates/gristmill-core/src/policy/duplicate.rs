//! What a put with a key does when tasks of that key stand.

use std::time::Duration;

use crate::{OnDuplicate, Settings, Start, TaskId, Timestamp, Unique};

/// What a store found in a key's two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Places {
    /// The task that was never claimed.
    pub waiting: Option<TaskId>,
    /// The task that was claimed at least once and has not ended.
    pub in_flight: Option<TaskId>,
}

/// What the put becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A new task in the waiting place.
    Enqueue {
        /// It may not be claimed while the in-flight place is taken.
        blocked: bool,
    },
    /// Nothing: this one stands for it.
    Duplicate(TaskId),
    /// This one takes over its data.
    Replace(TaskId),
    /// This one takes over its data and starts later.
    Postpone(TaskId),
}

/// Decides what a keyed put becomes.
#[must_use]
pub const fn on_put(places: Places, settings: &Settings) -> Verdict {
    match (places.waiting, places.in_flight, settings.unique) {
        (Some(standing), _, Unique::Pending) => match settings.on_duplicate {
            OnDuplicate::Skip => Verdict::Duplicate(standing),
            OnDuplicate::Replace => Verdict::Replace(standing),
            OnDuplicate::Postpone => Verdict::Postpone(standing),
        },
        (Some(standing), _, Unique::Active) | (None, Some(standing), Unique::Active) => {
            Verdict::Duplicate(standing)
        }
        (None, in_flight, _) => Verdict::Enqueue { blocked: in_flight.is_some() },
    }
}

/// The task that keeps another one of its key, put under this uniqueness, out
/// of the waiting place.
#[must_use]
pub fn in_the_way(places: Places, unique: Unique) -> Option<TaskId> {
    match unique {
        Unique::Pending => places.waiting,
        Unique::Active => places.waiting.or(places.in_flight),
    }
}

/// Until when the put of a key keeps out others of it, also when its task is gone:
/// nothing where the queue does not say so, and nothing where it is over already. A
/// task of another store was put before now, and a clock that was ahead said otherwise.
#[must_use]
pub fn window_end(put_at: Timestamp, settings: &Settings, now: Timestamp) -> Option<Timestamp> {
    let until = put_at.min(now).after(settings.unique_for?);
    (until > now).then_some(until)
}

/// When a replaced task runs: as asked, or as before when nothing was asked.
#[must_use]
pub fn replaced_run_at(standing: Timestamp, start: Start, now: Timestamp) -> Timestamp {
    match start {
        Start::Now => standing,
        Start::At(_) | Start::After(_) => start.run_at(now),
    }
}

/// When a postponed task runs: as asked, never earlier than before, and never
/// later than its first put plus the longest postponement (ten delays unless
/// set).
#[must_use]
pub fn postponed_run_at(
    standing: Timestamp,
    created_at: Timestamp,
    start: Start,
    now: Timestamp,
    longest: Option<Duration>,
) -> Timestamp {
    let asked = start.run_at(now);
    let longest = longest.unwrap_or_else(|| asked.since(now).saturating_mul(10));
    asked.min(created_at.after(longest)).max(standing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places() -> impl Strategy<Value = Places> {
        (any::<bool>(), any::<bool>()).prop_map(|(w, f)| Places {
            waiting: w.then_some(TaskId(1)),
            in_flight: f.then_some(TaskId(2)),
        })
    }

    proptest! {
        #[test]
        fn the_waiting_place_never_gets_a_second_task(
            places in places(), active in any::<bool>(), on in 0usize..3,
        ) {
            let settings = Settings {
                unique: if active { Unique::Active } else { Unique::Pending },
                on_duplicate: if active {
                    OnDuplicate::Skip
                } else {
                    [OnDuplicate::Skip, OnDuplicate::Replace, OnDuplicate::Postpone][on]
                },
                ..Settings::default()
            };
            match on_put(places, &settings) {
                Verdict::Enqueue { blocked } => {
                    prop_assert!(places.waiting.is_none());
                    prop_assert_eq!(blocked, places.in_flight.is_some());
                    prop_assert!(!(active && blocked));
                }
                Verdict::Duplicate(id) | Verdict::Replace(id) | Verdict::Postpone(id) => {
                    prop_assert!(places.waiting.or(places.in_flight) == Some(id));
                }
            }
        }

        #[test]
        fn a_window_lasts_from_the_put_and_never_longer_than_the_queue_says(
            put_at in 0i64..1_000_000_000, now in 0i64..1_000_000_000,
            window in 1u64..1_000_000_000,
        ) {
            let unique_for = Some(Duration::from_micros(window));
            let settings = Settings { unique_for, ..Settings::default() };
            let (put_at, now) = (Timestamp::from_micros(put_at), Timestamp::from_micros(now));
            let longest = now.after(Duration::from_micros(window));
            match window_end(put_at, &settings, now) {
                Some(until) => {
                    prop_assert!(until > now && until <= longest);
                    prop_assert_eq!(until == longest, put_at >= now);
                }
                None => prop_assert!(put_at.after(Duration::from_micros(window)) <= now),
            }
            prop_assert_eq!(window_end(put_at, &Settings::default(), now), None);
        }

        #[test]
        fn postponing_never_passes_the_limit_nor_goes_back(
            created in 0i64..1_000_000_000, step in 0i64..1_000_000_000,
            standing in 0i64..2_000_000_000, delay in 0u64..1_000_000, max in 0u64..10_000_000,
        ) {
            let created = Timestamp::from_micros(created);
            let now = created.after(Duration::from_micros(step.cast_unsigned()));
            let standing = Timestamp::from_micros(standing);
            let max = Duration::from_micros(max);
            let start = Start::After(Duration::from_micros(delay));
            let moved = postponed_run_at(standing, created, start, now, Some(max));
            prop_assert!(moved >= standing);
            prop_assert!(moved <= created.after(max).max(standing));
        }
    }
}
