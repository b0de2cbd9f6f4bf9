//! When a schedule fires next, and which fires are due.

mod cron;
#[cfg(test)]
mod daylight;
#[cfg(test)]
mod oracle;

use std::str::FromStr;
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::{Missed, Rule, Timestamp};
use cron::CronTimes;

/// Most fires that the policy `all` makes up for.
pub const MISSED_MAX: usize = 100;
/// Shortest interval.
pub const EVERY_MIN: Duration = Duration::from_secs(1);

/// The longest interval: a leap year.
const EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(String);

/// What clocks of a time zone show at an instant, to the minute, with the day; nothing
/// where the zone is not known.
#[must_use]
pub fn shown_in(at: Timestamp, zone: &str) -> Option<String> {
    let zone = TimeZone::get(zone).ok()?;
    let there = jiff::Timestamp::from_microsecond(at.as_micros()).ok()?.to_zoned(zone);
    let seconds = if there.second() == 0 { "" } else { ":%S" };
    Some(there.strftime(&format!("%a %-d %b %H:%M{seconds}")).to_string())
}

/// A rule that was checked and can be asked.
#[derive(Debug, Clone)]
pub struct FireTimes {
    rule: Parsed,
}

#[derive(Debug, Clone)]
enum Parsed {
    Cron(Box<CronTimes>),
    Every(i64),
}

impl FireTimes {
    /// Reads a rule in its time zone.
    ///
    /// # Errors
    /// When the expression or zone cannot be read, the interval is too short
    /// or too long, or the expression never fires (30 February).
    pub fn new(rule: &Rule, zone: &str) -> Result<Self, RuleError> {
        let zone_read = TimeZone::get(zone).map_err(|_| {
            RuleError(format!("'{zone}' is not a time zone: use a name like Europe/Athens"))
        })?;
        let rule = match rule {
            Rule::Cron(text) => {
                let cron = CronTimes::read(text, zone_read)
                    .map_err(|e| RuleError(format!("'{text}' is not a cron expression: {e}")))?;
                Parsed::Cron(Box::new(cron))
            }
            Rule::Every(interval) => {
                if *interval < EVERY_MIN || *interval > EVERY_MAX {
                    let days = interval.as_secs() / (24 * 3600);
                    let given = match (interval.is_zero(), days) {
                        (true, _) => "0s".to_owned(),
                        (_, 0) => format!("{interval:?}"),
                        _ => format!("{days} days"),
                    };
                    return Err(RuleError(format!(
                        "an interval is from {EVERY_MIN:?} to 366 days, not {given}"
                    )));
                }
                let micros = i64::try_from(interval.as_micros())
                    .map_err(|_| RuleError("the interval is too long".to_owned()))?;
                Parsed::Every(micros)
            }
        };
        let times = FireTimes { rule };
        // Some expressions parse and never match: say so now, not at night.
        let start = Timestamp::from_str("2026-01-01T00:00:00Z").unwrap_or_default();
        if times.after(start).is_none() {
            return Err(RuleError("this expression never fires".to_owned()));
        }
        Ok(times)
    }

    /// The first fire strictly after `instant`.
    #[must_use]
    pub fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Parsed::Every(interval) => {
                let micros = instant.as_micros();
                let next =
                    micros.checked_sub(micros.rem_euclid(*interval))?.checked_add(*interval)?;
                Some(Timestamp::from_micros(next)).filter(|t| *t <= Timestamp::MAX)
            }
            // Fires are whole seconds: the first after a fraction is the first
            // after the second it belongs to.
            Parsed::Cron(cron) => from_second(cron.after(second(instant))?),
        }
    }

    /// The last fire at or before `instant` and after `floor`.
    #[must_use]
    pub fn up_to(&self, instant: Timestamp, floor: Timestamp) -> Option<Timestamp> {
        let found = match &self.rule {
            Parsed::Every(interval) => {
                let micros = instant.as_micros();
                Timestamp::from_micros(micros - micros.rem_euclid(*interval))
            }
            Parsed::Cron(cron) => from_second(cron.up_to(second(instant), second(floor))?)?,
        };
        Some(found).filter(|at| *at > floor)
    }

    /// Which fires to make now, for a schedule decided up to `decided_until`.
    ///
    /// Looks back from now, as many fires as the policy can want: years of
    /// downtime cost as much as a minute.
    #[must_use]
    pub fn due(&self, decided_until: Timestamp, now: Timestamp, missed: Missed) -> Due {
        let most = match missed {
            Missed::All => MISSED_MAX,
            Missed::Once | Missed::Skip => 1,
        };
        let before = |at: Timestamp| Timestamp::from_micros(at.as_micros() - 1);
        let newest = self.up_to(now, decided_until);
        let mut fires: Vec<Timestamp> =
            std::iter::successors(newest, |at| self.up_to(before(*at), decided_until))
                .take(most)
                .collect();
        fires.reverse();
        if missed == Missed::Skip {
            // A fire is missed once the next one is due as well, or when it is
            // more than a minute late.
            fires.retain(|at| now.since(*at) <= Duration::from_secs(60));
        }
        let decided_until = now.max(decided_until);
        Due { fires, decided_until, next: self.after(decided_until) }
    }
}

fn second(instant: Timestamp) -> i64 {
    instant.as_micros().div_euclid(1_000_000)
}

fn from_second(second: i64) -> Option<Timestamp> {
    let at = Timestamp::from_micros(second.checked_mul(1_000_000)?);
    Some(at).filter(|at| *at <= Timestamp::MAX)
}

/// What a scheduler has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Fires to make, oldest first.
    pub fires: Vec<Timestamp>,
    /// Everything up to here is decided once they are made.
    pub decided_until: Timestamp,
    /// When to look again.
    pub next: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn cron(text: &str, zone: &str) -> FireTimes {
        FireTimes::new(&Rule::Cron(text.to_owned()), zone).expect("a rule")
    }

    #[test]
    fn a_time_in_the_gap_fires_once_right_after_it() {
        let times = cron("30 2 * * *", "America/New_York");
        let fire = times.after(at("2025-03-08T12:00:00Z"));
        assert_eq!(fire, Some(at("2025-03-09T07:00:00Z")));
        assert_eq!(times.after(at("2025-03-09T07:00:00Z")), Some(at("2025-03-10T06:30:00Z")));
    }

    #[test]
    fn a_time_that_occurs_twice_fires_once() {
        let times = cron("30 1 * * *", "America/New_York");
        let first = times.after(at("2025-11-01T12:00:00Z")).expect("a fire");
        assert_eq!(first, at("2025-11-02T05:30:00Z"));
        assert_eq!(times.after(first), Some(at("2025-11-03T06:30:00Z")));
    }

    #[test]
    fn steps_follow_real_time_through_the_repeated_hour() {
        let times = cron("*/30 * * * *", "America/New_York");
        let mut instant = at("2025-11-02T04:00:00Z");
        for _ in 0..8 {
            let next = times.after(instant).expect("a fire");
            assert_eq!(next.since(instant), Duration::from_secs(1800));
            instant = next;
        }
    }

    #[test]
    fn rules_that_cannot_work_say_why() {
        for (rule, zone, word) in [
            (Rule::Cron("61 * * * *".to_owned()), "UTC", "cron"),
            (Rule::Cron("0 0 30 2 *".to_owned()), "UTC", "never"),
            (Rule::Cron("* * * * *".to_owned()), "Mars/Olympus", "time zone"),
            (Rule::Every(Duration::from_millis(1)), "UTC", "interval"),
            (Rule::Every(Duration::ZERO), "UTC", "from 1s to 366 days, not 0s"),
            (Rule::Every(Duration::from_secs(367 * 86_400)), "UTC", "not 367 days"),
        ] {
            let error = FireTimes::new(&rule, zone).expect_err("unusable");
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn missed_fires_follow_the_policy() {
        let times = cron("0 * * * *", "UTC");
        let from = at("2026-01-01T00:00:00Z");
        let now = at("2026-01-01T05:30:00Z");
        assert_eq!(times.due(from, now, Missed::Once).fires, [at("2026-01-01T05:00:00Z")]);
        assert_eq!(times.due(from, now, Missed::Skip).fires, []);
        assert_eq!(times.due(from, now, Missed::All).fires.len(), 5);
        let later = at("2029-01-01T05:30:00Z");
        let all = times.due(from, later, Missed::All);
        assert_eq!(all.fires.len(), MISSED_MAX);
        assert_eq!(all.fires.last(), Some(&at("2029-01-01T05:00:00Z")));
    }

    /// Expressions, and a span in seconds that holds a hundred of their fires
    /// wherever it lies (or all there can be).
    const LATE: &[(&str, u64)] = &[
        ("* * * * * *", 200),
        ("*/7 */3 * * * *", 7_200),
        ("* * * * *", 7_200),
        ("30 2 * * *", 110 * 86_400),
        ("0,30 1,2 * * 0", 400_000_000),
        ("0 * * 1 1 *", 400 * 86_400),
        ("0 0 29 2 *", 400_000_000),
        ("*/20 1-3 * * *", 40 * 86_400),
        ("@hourly", 11 * 86_400),
    ];

    #[test]
    fn years_of_seconds_cost_a_hundred_steps() {
        let (from, now) = (at("2000-01-01T00:00:00Z"), at("2026-06-01T00:00:00Z"));
        for expression in ["* * * * * *", "* * * 1 1 *", "0 0 29 2 *"] {
            let due = cron(expression, "Europe/Athens").due(from, now, Missed::All);
            assert!(due.fires.len() == 100 || expression.ends_with("29 2 *"), "{expression}");
            assert!(due.fires.is_sorted() && due.fires.last().is_some_and(|at| *at <= now));
        }
        let every = FireTimes::new(&Rule::Every(EVERY_MIN), "UTC").expect("a rule");
        assert_eq!(every.due(from, now, Missed::All).fires.len(), 100);
    }

    proptest! {
        #[test]
        fn fires_rise_and_never_repeat(
            start in 1_700_000_000i64..2_100_000_000, expression in 0usize..5, zone in 0usize..4,
        ) {
            let expression =
                ["*/7 * * * *", "30 2 * * *", "0 0 1 * *", "15 */6 * * 1-5", "0 0 29 2 *"][expression];
            let zone = ["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"][zone];
            let times = cron(expression, zone);
            let start = Timestamp::from_micros(start * 1_000_000);
            let mut instant = start;
            for _ in 0..20 {
                let next = times.after(instant).expect("a fire");
                prop_assert!(next > instant);
                instant = next;
            }
            // Deciding in two steps makes the same fires as deciding in one.
            let middle = times.after(start).expect("a fire");
            let end = times.after(middle).expect("a fire");
            let mut steps = times.due(start, middle, Missed::All).fires;
            steps.extend(times.due(middle, end, Missed::All).fires);
            prop_assert_eq!(steps, times.due(start, end, Missed::All).fires);
        }

        #[test]
        fn making_up_finds_exactly_the_last_fires(
            start in 1_700_000_000i64..1_900_000_000, past in 0i64..400_000_000,
            expression in 0usize..LATE.len(), zone in 0usize..4,
        ) {
            let (expression, near) = LATE[expression];
            let zone = ["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"][zone];
            let times = cron(expression, zone);
            let now = Timestamp::from_micros((start + past) * 1_000_000 + 999_999);
            let decided = Timestamp::from_micros(start * 1_000_000);
            // Walks forward from a point that surely has a hundred fires
            // ahead, or from the beginning.
            let near = now.before(Duration::from_secs(near)).max(decided);
            let walk = std::iter::successors(times.after(near), |at| times.after(*at));
            let walked: Vec<Timestamp> = walk.take_while(|at| *at <= now).collect();
            let last = &walked[walked.len().saturating_sub(MISSED_MAX)..];
            let due = times.due(decided, now, Missed::All);
            prop_assert_eq!(&due.fires, last);
            prop_assert_eq!(due.next, times.after(now));
            let once = times.due(decided, now, Missed::Once).fires;
            prop_assert_eq!(&once[..], &walked[walked.len().saturating_sub(1)..]);
        }

        #[test]
        fn intervals_agree_whoever_counts(seconds in 1u64..100_000, start in 0i64..4_000_000_000) {
            let times = FireTimes::new(&Rule::Every(Duration::from_secs(seconds)), "UTC").expect("a rule");
            let from = Timestamp::from_micros(start * 1_000_000 + 17);
            let next = times.after(from).expect("a fire");
            prop_assert!(next.as_micros() % i64::try_from(seconds * 1_000_000).unwrap() == 0);
            prop_assert!(next.since(from) <= Duration::from_secs(seconds));
        }
    }
}
