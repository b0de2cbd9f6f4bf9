//! The rule of daylight saving from first principles, to check the search
//! against: walks real minutes, looks at the wall clock, and knows nothing of
//! how the search works.

use jiff::tz::TimeZone;

/// One minute as it really passes, with what the wall shows.
pub(super) struct Wall {
    /// Minutes after the epoch, in real time.
    pub(super) minute: i64,
    /// Minutes after the epoch by the wall.
    civil: i64,
    at: Civil,
}

/// What a wall clock and a calendar beside it show.
#[derive(Clone, Copy)]
struct Civil {
    minute: u8,
    hour: u8,
    day: u8,
    month: u8,
    weekday: u8,
}

impl Civil {
    fn of(minutes: i64) -> Self {
        let shown = jiff::Timestamp::from_second(minutes * 60).unwrap().to_zoned(TimeZone::UTC);
        Civil {
            minute: u8::try_from(shown.minute()).unwrap(),
            hour: u8::try_from(shown.hour()).unwrap(),
            day: u8::try_from(shown.day()).unwrap(),
            month: u8::try_from(shown.month()).unwrap(),
            weekday: u8::try_from(shown.weekday().to_sunday_zero_offset()).unwrap(),
        }
    }
}

/// The minutes of a span of real time, as they pass in a zone.
pub(super) fn minutes(zone: &TimeZone, from: i64, to: i64) -> Vec<Wall> {
    (from..to)
        .map(|minute| {
            let instant = jiff::Timestamp::from_second(minute * 60).unwrap();
            let civil = minute + i64::from(zone.to_offset(instant).seconds()).div_euclid(60);
            Wall { minute, civil, at: Civil::of(civil) }
        })
        .collect()
}

/// Numbers below 64, a bit each.
#[derive(Clone, Copy, Default)]
struct Set(u64);

impl Set {
    fn has(self, number: u8) -> bool {
        self.0 >> number & 1 == 1
    }
}

/// An expression of five fields, as sets of numbers.
pub(super) struct Expression {
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
    /// Both day fields are given: either may match.
    either_day: bool,
    /// Minute and hour are lists of plain numbers.
    fixed: bool,
}

impl Expression {
    pub(super) fn read(text: &str) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let plain = |field: &str| field.split(',').all(|part| part.parse::<u8>().is_ok());
        // Sunday is 0 and 7.
        let Set(week) = numbers(fields[4], 0, 7);
        let weekdays = Set(week | week >> 7 & 1);
        Expression {
            minutes: numbers(fields[0], 0, 59),
            hours: numbers(fields[1], 0, 23),
            days: numbers(fields[2], 1, 31),
            months: numbers(fields[3], 1, 12),
            weekdays,
            either_day: fields[2] != "*" && fields[4] != "*",
            fixed: plain(fields[0]) && plain(fields[1]),
        }
    }

    fn matches(&self, at: Civil) -> bool {
        let (day, weekday) = (self.days.has(at.day), self.weekdays.has(at.weekday));
        self.minutes.has(at.minute)
            && self.hours.has(at.hour)
            && self.months.has(at.month)
            && if self.either_day { day || weekday } else { day && weekday }
    }

    /// The minutes at which it must fire. The span begins far from any jump.
    pub(super) fn fires(&self, span: &[Wall]) -> Vec<i64> {
        let mut fires = Vec::new();
        // The latest the wall has shown so far.
        let mut latest = span.first().map_or(0, |wall| wall.civil - 1);
        for wall in span {
            let fires_now = if self.fixed {
                // Everything the wall newly reached, also what it jumped over.
                // What it shows a second time is not new.
                (latest + 1..wall.civil).any(|missing| self.matches(Civil::of(missing)))
                    || (wall.civil > latest && self.matches(wall.at))
            } else {
                self.matches(wall.at)
            };
            if fires_now {
                fires.push(wall.minute);
            }
            latest = latest.max(wall.civil);
        }
        fires
    }
}

/// A field: numbers, ranges and steps, with commas between.
fn numbers(field: &str, least: u8, most: u8) -> Set {
    let mut set = Set::default();
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap()),
            None if range == "*" => (least, most),
            None => (range.parse().unwrap(), range.parse().unwrap()),
        };
        for number in (from..=to).step_by(step.parse().unwrap()) {
            set.0 |= 1 << number;
        }
    }
    set
}
