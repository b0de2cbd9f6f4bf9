//! What an ended attempt makes of its task.

use crate::policy::backoff;
use crate::{Limits, Outcome, Settings, TaskId, Timestamp};

/// What a store knows of a task whose attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The task.
    pub id: TaskId,
    /// Attempts, the ending one included.
    pub attempts: u32,
    /// Claims ever, the ending one included.
    pub claims: u32,
    /// Leases that had run out before.
    pub expiries: u32,
    /// Releases after a start that were free so far.
    pub started_releases: u32,
    /// When the ending attempt fell due.
    pub run_at: Timestamp,
    /// `run_at` of the attempt before.
    pub prev_run_at: Option<Timestamp>,
    /// An operator asked for its end.
    pub cancel_requested: bool,
}

/// What becomes of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Finished: deleted or kept apart.
    Done,
    /// Deleted at an operator's wish.
    Cancelled,
    /// Back to its queue with these values.
    Back(Back),
    /// Failed for good, with this error.
    Failed(String),
}

/// The values a task goes back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Back {
    /// Not claimed before.
    pub run_at: Timestamp,
    /// The attempt before the next one fell due then.
    pub prev_run_at: Option<Timestamp>,
    /// Attempts that count.
    pub attempts: u32,
    /// Leases that ran out.
    pub expiries: u32,
    /// Releases after a start that were free.
    pub started_releases: u32,
    /// It was given back, not tried in vain.
    pub released: bool,
}

impl Facts {
    fn counted(&self, run_at: Timestamp) -> Back {
        Back {
            run_at,
            prev_run_at: Some(self.run_at),
            attempts: self.attempts,
            expiries: self.expiries,
            started_releases: self.started_releases,
            released: false,
        }
    }

    /// Its old place. It was due when it was claimed: where the clock says that it
    /// is not, the clock has gone back, and the task is not to wait for it again.
    fn old_place(&self, now: Timestamp) -> Timestamp {
        self.run_at.min(now)
    }

    fn used_up(&self, settings: &Settings) -> bool {
        settings.max_attempts.is_some_and(|max| self.attempts >= max)
    }

    fn after_backoff(&self, settings: &Settings, now: Timestamp) -> Timestamp {
        let spread = backoff::spread(self.id, self.claims);
        now.after(backoff::wait(&settings.backoff, self.attempts.saturating_sub(1), spread))
    }
}

/// Decides what a settled attempt makes of its task. `error` says what went
/// wrong: the outcome's own words, or more than those.
#[must_use]
pub fn after_settlement(
    facts: &Facts,
    outcome: &Outcome,
    error: Option<String>,
    settings: &Settings,
    limits: &Limits,
    now: Timestamp,
) -> Next {
    match outcome {
        Outcome::Done => return Next::Done,
        Outcome::Cancelled => return Next::Cancelled,
        // The operator's wish outlives an attempt that would have come back.
        Outcome::Error(_)
        | Outcome::TimedOut(_)
        | Outcome::Retry { .. }
        | Outcome::Release { .. }
            if facts.cancel_requested =>
        {
            return Next::Cancelled;
        }
        _ => {}
    }
    match outcome {
        Outcome::Fail(_) => Next::Failed(error.unwrap_or_default()),
        Outcome::Release { at, started } => {
            let run_at = at.map_or(facts.old_place(now), |at| at.instant(now));
            let free = !started || facts.started_releases < limits.started_releases;
            if free {
                Next::Back(Back {
                    prev_run_at: facts.prev_run_at,
                    attempts: facts.attempts.saturating_sub(1),
                    started_releases: facts.started_releases + u32::from(*started),
                    released: true,
                    ..facts.counted(run_at)
                })
            } else if facts.used_up(settings) {
                Next::Failed(format!(
                    "released {} times after a start; then every release counts, and {} attempts \
                     are used up",
                    facts.started_releases, facts.attempts
                ))
            } else {
                Next::Back(Back { released: true, ..facts.counted(run_at) })
            }
        }
        Outcome::Retry { .. } if facts.used_up(settings) => {
            Next::Failed(error.unwrap_or_else(|| {
                format!("another run was asked for, but {} attempts are used up", facts.attempts)
            }))
        }
        Outcome::Retry { at, .. } => Next::Back(facts.counted(at.instant(now))),
        _ if facts.used_up(settings) => Next::Failed(error.unwrap_or_default()),
        _ => Next::Back(facts.counted(facts.after_backoff(settings, now))),
    }
}

/// What a store says of an attempt whose lease ran out.
pub const EXPIRED: &str = "the lease ran out: the worker died, hung or lost the store";

/// Decides what a lease that ran out makes of its task: the first time it goes
/// back at once in its old place, later with backoff, and it counts.
#[must_use]
pub fn after_expiry(facts: &Facts, settings: &Settings, now: Timestamp) -> Next {
    if facts.cancel_requested {
        return Next::Cancelled;
    }
    if facts.used_up(settings) {
        return Next::Failed(EXPIRED.to_owned());
    }
    let run_at =
        if facts.expiries == 0 { facts.old_place(now) } else { facts.after_backoff(settings, now) };
    Next::Back(Back { expiries: facts.expiries.saturating_add(1), ..facts.counted(run_at) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::When;
    use proptest::prelude::*;
    use std::time::Duration;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Done),
            Just(Outcome::Cancelled),
            Just(Outcome::Error("e".to_owned())),
            Just(Outcome::TimedOut(Duration::from_secs(1))),
            Just(Outcome::Fail("f".to_owned())),
            (0u64..100_000).prop_map(|s| Outcome::Retry {
                at: When::After(Duration::from_secs(s)),
                reason: None
            }),
            (any::<bool>(), proptest::option::of(0u64..100_000)).prop_map(|(started, s)| {
                Outcome::Release { at: s.map(|s| When::After(Duration::from_secs(s))), started }
            }),
        ]
    }

    fn facts() -> impl Strategy<Value = Facts> {
        (1u32..10_000, 0u32..10_000, 0u32..10, 0u32..30, any::<bool>(), 0i64..1_000_000).prop_map(
            |(attempts, more, expiries, started_releases, cancel_requested, run_at)| Facts {
                id: TaskId(7),
                attempts,
                claims: attempts + more,
                expiries,
                started_releases,
                run_at: Timestamp::from_micros(run_at),
                prev_run_at: None,
                cancel_requested,
            },
        )
    }

    proptest! {
        #[test]
        fn attempts_never_pass_the_limit(
            facts in facts(), outcome in outcome(), max in proptest::option::of(1u32..10_000),
        ) {
            let settings = Settings { max_attempts: max, ..Settings::default() };
            let now = Timestamp::from_micros(2_000_000);
            for next in [
                after_settlement(
                    &facts, &outcome, outcome.error(), &settings, &Limits::default(), now,
                ),
                after_expiry(&facts, &settings, now),
            ] {
                if let Next::Back(back) = next {
                    // What goes back has an attempt left ...
                    prop_assert!(max.is_none_or(|max| back.attempts < max || back.released));
                    // ... and only a release takes one back.
                    prop_assert!(back.attempts == facts.attempts || back.released);
                    prop_assert!(!facts.cancel_requested);
                }
            }
        }

        #[test]
        fn what_keeps_its_place_is_due_also_when_the_clock_went_back(facts in facts()) {
            let facts = Facts { cancel_requested: false, expiries: 0, ..facts };
            let settings = Settings { max_attempts: None, ..Settings::default() };
            let now = Timestamp::from_micros(500_000);
            let release = Outcome::Release { at: None, started: false };
            for next in [
                after_settlement(&facts, &release, None, &settings, &Limits::default(), now),
                after_expiry(&facts, &settings, now),
            ] {
                let Next::Back(back) = next else { panic!("it goes back") };
                prop_assert_eq!(back.run_at, facts.run_at.min(now));
            }
        }

        #[test]
        fn a_release_is_free_at_most_twenty_times_after_a_start(facts in facts()) {
            let outcome = Outcome::Release { at: None, started: true };
            let settings = Settings { max_attempts: None, ..Settings::default() };
            let facts = Facts { cancel_requested: false, ..facts };
            let now = Timestamp::from_micros(2_000_000);
            let next = after_settlement(&facts, &outcome, None, &settings, &Limits::default(), now);
            let Next::Back(back) = next else { panic!("a release goes back") };
            prop_assert_eq!(back.attempts < facts.attempts, facts.started_releases < 20);
            prop_assert_eq!(back.run_at, facts.run_at);
        }
    }

    #[test]
    fn the_first_expiry_keeps_the_place_and_later_ones_wait() {
        let facts = Facts {
            id: TaskId(1),
            attempts: 1,
            claims: 1,
            expiries: 0,
            started_releases: 0,
            run_at: Timestamp::from_micros(5),
            prev_run_at: None,
            cancel_requested: false,
        };
        let settings = Settings::default();
        let now = Timestamp::from_micros(1_000_000);
        let Next::Back(first) = after_expiry(&facts, &settings, now) else { panic!() };
        assert_eq!((first.run_at, first.expiries), (facts.run_at, 1));
        let again = Facts { attempts: 2, claims: 2, expiries: 1, ..facts };
        let Next::Back(second) = after_expiry(&again, &settings, now) else { panic!() };
        assert!(second.run_at > now);
        let last = Facts { attempts: 5, claims: 5, expiries: 4, ..facts };
        assert_eq!(after_expiry(&last, &settings, now), Next::Failed(EXPIRED.to_owned()));
    }
}
