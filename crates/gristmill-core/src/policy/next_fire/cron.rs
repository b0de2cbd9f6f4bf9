//! Cron in a time zone: which instants an expression means when clocks jump.
//!
//! The expression is searched on a calendar without jumps, and what it says
//! there is placed in the zone by one of two rules:
//!
//! - **Fixed times.** Second (if given), minute and hour are lists of plain
//!   numbers, like `30 2` or `0,30 6,18`. Each time of day that the calendar
//!   names fires once: in a gap right after it, of two occurrences at the
//!   first.
//! - **Everything else** (steps, ranges, wildcards) follows real time: an
//!   instant fires when its civil time matches. Times in a gap do not exist,
//!   and those that occur twice are two real times.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// An expression in its zone. Instants are whole seconds after the epoch;
/// civil times are counted as if they were UTC.
#[derive(Debug, Clone)]
pub(super) struct CronTimes {
    cron: Cron,
    zone: TimeZone,
    fixed: bool,
}

impl CronTimes {
    /// Reads an expression of five fields, or six with seconds in front, or
    /// seven with a year behind, or a nickname like `@daily`.
    pub(super) fn read(text: &str, zone: TimeZone) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Optional).build();
        let cron = parser.parse(text).map_err(|error| {
            // Only the last part says something to who wrote the expression.
            let said = error.to_string();
            let said = said.rsplit(": ").next().unwrap_or(&said).trim_end_matches('.');
            said.to_lowercase()
        })?;
        Ok(CronTimes { cron, zone, fixed: is_fixed(text) })
    }

    /// The first fire after this second.
    pub(super) fn after(&self, second: i64) -> Option<i64> {
        if self.fixed { self.fixed_after(second) } else { self.real_after(second) }
    }

    /// The last fire at or before this second and after `floor`.
    pub(super) fn up_to(&self, second: i64, floor: i64) -> Option<i64> {
        let found =
            if self.fixed { self.fixed_up_to(second) } else { self.real_up_to(second, floor) };
        found.filter(|at| *at > floor)
    }

    fn fixed_after(&self, second: i64) -> Option<i64> {
        // Placing keeps the order, so no civil time before this one can be
        // placed later. Those that were placed already (in the second of two
        // passes) are left behind.
        let mut civil = second + self.offset(second)?;
        loop {
            civil = self.civil_after(civil)?;
            let at = self.place(civil)?;
            if at > second {
                return Some(at);
            }
        }
    }

    fn fixed_up_to(&self, second: i64) -> Option<i64> {
        let offset = self.offset(second)?;
        let civil = second + offset;
        let mut end = civil + 1;
        // In the second of two passes all of the first is behind us.
        if let AmbiguousOffset::Fold { before, after } = self.ambiguity(civil)?
            && seconds(after) == offset
        {
            end = self.jump_before(second, after)? + seconds(before);
        }
        self.place(self.civil_before(end)?)
    }

    fn real_after(&self, second: i64) -> Option<i64> {
        // `here` lies between the same two jumps as what is looked for next,
        // and `from` is the second before the first candidate.
        let (mut here, mut from) = (second, second);
        let mut found: Option<(i64, i64)> = None;
        let mut ended = false;
        loop {
            let offset = self.offset(here)?;
            let lower = from + offset;
            // Between two jumps civil time runs like real time. What the last
            // search found is still the first after any point before it.
            let civil = match found {
                Some((start, civil)) if start <= lower && lower < civil => Some(civil),
                _ => self.civil_after(lower),
            };
            found = civil.map(|civil| (lower, civil));
            let jump = self.zone.following(stamp(here)?).next();
            let end = jump.map(|jump| jump.timestamp().as_second());
            match civil.map(|civil| civil - offset) {
                Some(at) if end.is_none_or(|end| at < end) => return Some(at),
                // A calendar that ended can be turned back by one jump only.
                None if ended => return None,
                answer => ended = answer.is_none(),
            }
            here = end?;
            from = here - 1;
        }
    }

    fn real_up_to(&self, second: i64, floor: i64) -> Option<i64> {
        let (mut upper, mut offset) = (second, self.offset(second)?);
        loop {
            let jump = self.zone.preceding(stamp(upper + 1)?).next();
            let start = jump.as_ref().map(|jump| jump.timestamp().as_second());
            let at = self.civil_before(upper + offset + 1).map(|civil| civil - offset);
            match (at, start) {
                (Some(at), None) => return Some(at),
                (Some(at), Some(start)) if at >= start => return Some(at),
                (_, Some(start)) if start > floor => upper = start - 1,
                _ => return None,
            }
            offset = self.offset(upper)?;
        }
    }

    /// Where a civil time of the calendar falls: in a gap at its end, of two
    /// occurrences on the first.
    fn place(&self, civil: i64) -> Option<i64> {
        Some(match self.ambiguity(civil)? {
            AmbiguousOffset::Unambiguous { offset } => civil - seconds(offset),
            AmbiguousOffset::Fold { before, .. } => civil - seconds(before),
            AmbiguousOffset::Gap { before, after } => {
                let latest = civil - seconds(before);
                self.jump_before(latest, after)?
            }
        })
    }

    /// The last jump to an offset, at or before this second.
    fn jump_before(&self, second: i64, to: Offset) -> Option<i64> {
        // Zones also have transitions that move no clock; they are few.
        let mut jumps = self.zone.preceding(stamp(second + 1)?);
        let jump = jumps.find(|jump| {
            let at = jump.timestamp().as_second();
            jump.offset() == to && self.offset(at - 1) != Some(seconds(to))
        })?;
        Some(jump.timestamp().as_second())
    }

    fn offset(&self, second: i64) -> Option<i64> {
        Some(seconds(self.zone.to_offset(stamp(second)?)))
    }

    fn ambiguity(&self, civil: i64) -> Option<AmbiguousOffset> {
        let civil = Offset::UTC.to_datetime(stamp(civil)?);
        Some(self.zone.to_ambiguous_timestamp(civil).offset())
    }

    /// The calendar's first match after a civil time.
    fn civil_after(&self, civil: i64) -> Option<i64> {
        let from = stamp(civil)?.to_zoned(TimeZone::UTC);
        let next = self.cron.find_next_occurrence(&from, false).ok()?;
        Some(next.timestamp().as_second())
    }

    /// The calendar's last match before a civil time.
    fn civil_before(&self, civil: i64) -> Option<i64> {
        let from = stamp(civil)?.to_zoned(TimeZone::UTC);
        let last = self.cron.find_previous_occurrence(&from, false).ok()?;
        Some(last.timestamp().as_second())
    }
}

fn seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

fn stamp(second: i64) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(second).ok()
}

/// Whether the expression names times of day by plain numbers.
fn is_fixed(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let plain = |field: &&str| field.chars().all(|c| c.is_ascii_digit() || c == ',');
    match fields.as_slice() {
        // All nicknames but one name a midnight.
        [nickname] => !nickname.eq_ignore_ascii_case("@hourly"),
        [minute, hour, _, _, _] => plain(minute) && plain(hour),
        [second, minute, hour, ..] => [second, minute, hour].into_iter().all(plain),
        _ => false,
    }
}
