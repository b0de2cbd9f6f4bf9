//! A rate as a token bucket: how many tasks may be claimed now, and when the next one
//! may.
//!
//! A bucket is kept as one instant: when it is full again. A task that is claimed moves
//! it on by the time in which one token comes, and a bucket nobody knows is full. So
//! time alone refills it, and nothing has to run for that.

use std::time::Duration;

use crate::{Per, Rate, Settings, Timestamp};

/// The bucket of a queue or a group, as the settings say it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    burst: u32,
}

impl Bucket {
    /// Where the settings have a rate.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Bucket> {
        let rate = settings.rate?;
        Some(Bucket { rate, burst: settings.burst.unwrap_or_else(|| rate.in_a_second()) })
    }

    /// In what time so many tokens come, a broken microsecond as a whole one.
    fn time(self, tokens: u64) -> u128 {
        let per = self.rate.per.as_micros();
        (u128::from(tokens) * per).div_ceil(u128::from(self.rate.tasks))
    }

    /// How far from full it is, in microseconds: never more than all of it, however far
    /// ahead the clock was that said so.
    fn missing(self, full_at: Option<Timestamp>, now: Timestamp) -> u128 {
        let missing = full_at.map_or(Duration::ZERO, |full_at| full_at.since(now));
        missing.as_micros().min(self.time(self.burst.into()))
    }

    /// The latest instant at which it can be full. One that is stamped later was stamped
    /// by a wrong clock.
    #[must_use]
    pub fn latest(self, now: Timestamp) -> Timestamp {
        now.after(micros(self.time(self.burst.into())))
    }

    /// How many tokens are there.
    #[must_use]
    pub fn tokens(self, full_at: Option<Timestamp>, now: Timestamp) -> u64 {
        let all = u128::from(self.burst) * self.rate.per.as_micros();
        let gone = self.missing(full_at, now) * u128::from(self.rate.tasks);
        u64::try_from(all.saturating_sub(gone) / self.rate.per.as_micros()).unwrap_or(u64::MAX)
    }

    /// When it is full, once so many tokens are taken.
    #[must_use]
    pub fn take(self, full_at: Option<Timestamp>, tokens: u64, now: Timestamp) -> Timestamp {
        now.after(micros(self.missing(full_at, now) + self.time(tokens)))
    }

    /// When it is full, once one token is given back: by a little less than it took,
    /// where a token's time is a broken one.
    #[must_use]
    pub fn give_back(self, full_at: Timestamp) -> Timestamp {
        full_at.before(micros(self.rate.per.as_micros() / u128::from(self.rate.tasks)))
    }

    /// How long until there is a token.
    #[must_use]
    pub fn wait(self, full_at: Option<Timestamp>, now: Timestamp) -> Duration {
        micros(self.missing(full_at, now).saturating_sub(self.all_but_one()))
    }

    /// The latest instant at which it may be full while it has a token: an index finds by
    /// it who has none.
    #[must_use]
    pub fn open_until(self, now: Timestamp) -> Timestamp {
        now.after(micros(self.all_but_one()))
    }

    /// How far from full it may be with a token in it.
    fn all_but_one(self) -> u128 {
        let but_one = u128::from(self.burst.saturating_sub(1)) * self.rate.per.as_micros();
        but_one / u128::from(self.rate.tasks)
    }
}

/// Whether a claim that is empty and says when to come back may have left tasks that are
/// due, because there was no token: nobody waits longer for one than it takes to come.
#[must_use]
pub fn may_wait_for_a_token(settings: &Settings, next_due: Duration) -> bool {
    let one = |bucket: Bucket| micros(bucket.time(1).saturating_add(1));
    Bucket::of(settings).is_some_and(|bucket| next_due <= one(bucket))
}

/// The name of the bucket that a task of this group is taken from.
#[must_use]
pub fn bucket_of<'g>(settings: &Settings, group: Option<&'g str>) -> &'g str {
    match settings.rate_per {
        Per::Queue => "",
        Per::Group => group.unwrap_or_default(),
    }
}

fn micros(micros: u128) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(tasks: u32, per: Duration, burst: u32) -> Bucket {
        Bucket { rate: Rate { tasks, per }, burst }
    }

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000_000);

    #[test]
    fn a_bucket_empties_with_claims_and_fills_with_time() {
        let bucket = bucket(100, Duration::from_secs(60), 5);
        assert_eq!(bucket.tokens(None, NOW), 5);
        let full_at = Some(bucket.take(None, 5, NOW));
        assert_eq!((bucket.tokens(full_at, NOW), full_at), (0, Some(bucket.latest(NOW))));
        assert_eq!(bucket.wait(full_at, NOW), Duration::from_millis(600));
        let later = NOW.after(Duration::from_millis(599));
        assert_eq!(bucket.tokens(full_at, later), 0);
        let later = NOW.after(Duration::from_millis(600));
        assert_eq!(
            (bucket.tokens(full_at, later), bucket.wait(full_at, later)),
            (1, Duration::ZERO)
        );
        let mut settings = Settings::default();
        assert!(!may_wait_for_a_token(&settings, Duration::ZERO));
        settings.rate = Some(Rate::new(100, Duration::from_secs(60)));
        assert!(may_wait_for_a_token(&settings, Duration::from_millis(600)));
        assert!(!may_wait_for_a_token(&settings, Duration::from_millis(601)));
        assert_eq!(bucket.tokens(full_at, NOW.after(Duration::from_secs(3))), 5);
        assert_eq!(bucket.tokens(full_at, NOW.after(Duration::from_secs(300))), 5);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let bucket = bucket(10, Duration::from_secs(1), 2);
        let full_at = bucket.take(None, 2, NOW);
        assert_eq!(bucket.tokens(Some(bucket.give_back(full_at)), NOW), 1);
    }

    #[test]
    fn a_stamp_of_a_wrong_clock_means_empty_and_no_more() {
        let bucket = bucket(1, Duration::from_secs(10), 3);
        let wrong = Some(NOW.after(Duration::from_secs(999_999)));
        assert_eq!(bucket.tokens(wrong, NOW), 0);
        assert_eq!(bucket.wait(wrong, NOW), Duration::from_secs(10));
        assert_eq!(bucket.take(wrong, 0, NOW), bucket.latest(NOW));
    }

    proptest! {
        /// Whatever is asked for and when: no more than the burst and what came since.
        #[test]
        fn never_more_than_the_burst_and_what_time_brought(
            tasks in 1u32..2_000, per in 1u64..90_000, burst in 1u32..50,
            claims in proptest::collection::vec((0u64..100_000, 0u64..60, any::<bool>()), 1..60),
        ) {
            let per = Duration::from_millis(per);
            let bucket = bucket(tasks, per, burst);
            let (mut now, mut full_at, mut taken) = (NOW, None, 0u128);
            for (passed, asked, returns) in claims {
                now = now.after(Duration::from_micros(passed));
                let got = bucket.tokens(full_at, now).min(asked);
                prop_assert!(got <= u64::from(burst));
                full_at = Some(bucket.take(full_at, got, now));
                prop_assert!(full_at <= Some(bucket.latest(now)));
                taken += u128::from(got);
                if returns && got > 0 {
                    full_at = full_at.map(|at| bucket.give_back(at));
                    taken -= 1;
                }
                let most = u128::from(burst) * per.as_micros()
                    + now.since(NOW).as_micros() * u128::from(tasks);
                prop_assert!(taken * per.as_micros() <= most, "{taken} taken");
                // The wait is as long as it has to be, and no longer.
                let wait = bucket.wait(full_at, now);
                prop_assert!(bucket.tokens(full_at, now.after(wait)) > 0);
                let is_open = full_at <= Some(bucket.open_until(now));
                prop_assert_eq!(is_open, bucket.tokens(full_at, now) > 0);
                if let Some(short) = wait.checked_sub(Duration::from_micros(1)) {
                    prop_assert_eq!(bucket.tokens(full_at, now.after(short)), 0);
                }
            }
        }
    }
}
