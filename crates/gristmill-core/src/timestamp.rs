//! An instant in UTC with microsecond precision: the only time stores speak.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Microseconds since 1970-01-01T00:00:00Z.
///
/// Only schedules know time zones; everything stored is one of these. The
/// arithmetic saturates: a task put "in ten thousand years" must not wrap
/// into the past and run now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The last instant that can be written as a date (in the year 9999).
    pub const MAX: Timestamp = Timestamp(253_402_300_799_000_000 - 2 * 86_400_000_000);

    /// The instant that many microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Timestamp(micros)
    }

    /// Microseconds after the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This instant moved forward, never past [`Timestamp::MAX`].
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(by).min(Self::MAX.0))
    }

    /// This instant moved back, never before the epoch.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(by).max(0))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The start of the minute this instant falls in.
    #[must_use]
    pub const fn minute(self) -> Self {
        Timestamp(self.0 - self.0.rem_euclid(60_000_000))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an RFC 3339 instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time: write it like 2026-11-15T08:30:00Z or 2026-11-15T08:30:00+02:00")]
pub struct TimestampError(String);

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|instant| instant.as_microsecond())
            .map(|micros| {
                Timestamp(if is_leap_second(text) { next_second(micros) } else { micros })
            })
            .map_err(|_| TimestampError(text.to_owned()))
    }
}

/// Whether a time's second is the sixtieth. It is read as the second before, and a
/// task would start before its time.
fn is_leap_second(text: &str) -> bool {
    let time = text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
    matches!(
        time.as_bytes(),
        [_, _, b':', _, _, b':', b'6', b'0', ..] | [_, _, _, _, b'6', b'0', ..]
    )
}

const fn next_second(micros: i64) -> i64 {
    (micros.div_euclid(1_000_000) + 1) * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp::MAX.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.before(Duration::MAX), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
    }

    #[test]
    fn text_survives_a_round_trip() {
        let instant: Timestamp = "2026-11-15T08:30:00.000001Z".parse().expect("a time");
        assert_eq!(instant.to_string(), "2026-11-15T08:30:00.000001Z");
        assert_eq!(Timestamp::MAX.to_string().parse::<Timestamp>(), Ok(Timestamp::MAX));
        assert!("tomorrow".parse::<Timestamp>().is_err());
    }

    #[test]
    fn a_leap_second_is_not_early() {
        let next: Timestamp = "2017-01-01T00:00:00Z".parse().expect("a time");
        for leap in [
            "2016-12-31T23:59:60Z",
            "2016-12-31 23:59:60.5Z",
            "2017-01-01T01:59:60+02:00",
            "20161231T235960Z",
        ] {
            assert_eq!(leap.parse(), Ok(next), "{leap}");
        }
        let before: Timestamp = "2016-12-31T23:59:59.9Z".parse().expect("a time");
        assert!(before < next);
    }
}
