//! Times as people say them at a keyboard: in their own zone, by the day or by the hour.
//!
//! Programs write RFC 3339, and so does every file; only what is typed is read here.

use gristmill::Timestamp;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};

/// Reads a time: an instant, or a time of day with or without its day, in `zone`. A
/// time of day alone is the next one. One that the zone leaves out comes right after
/// the gap, one that it has twice is the first.
///
/// # Errors
/// One sentence that says how to write it.
pub(crate) fn read(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let shown: String = text.chars().take(40).collect();
    let wrong = |why: &str| {
        format!(
            "'{shown}' is not a time: {why}write it like '17:30', 'tomorrow 9:00', 'monday 9:00', \
             '2026-11-15 08:30' (in your zone) or 2026-11-15T08:30:00Z"
        )
    };
    let here = jiff::Timestamp::from_microsecond(now.as_micros())
        .map_err(|_| wrong("the clock is out of range; "))?
        .to_zoned(zone.clone());
    let words: Vec<&str> = match text.split_once('T') {
        Some((date, time)) if time.starts_with(|c: char| c.is_ascii_digit()) => vec![date, time],
        _ => text.split_whitespace().collect(),
    };
    let local = match *words {
        [said] => match time(said) {
            Some(time) => next(&here, time),
            None if day(said, here.date()).is_some() => {
                return Err(wrong("it has no time of day; "));
            }
            None => None,
        },
        [said, clock] => match (day(said, here.date()), time(clock)) {
            (Some(day), Some(time)) => Some(day.to_datetime(time)),
            _ => None,
        },
        _ => None,
    };
    let instant = local.and_then(|local| local.to_zoned(zone.clone()).ok());
    let instant = instant.ok_or_else(|| wrong(""))?;
    Ok(Timestamp::from_micros(instant.timestamp().as_microsecond()))
}

/// An instant as it is in a zone: `2026-11-15 08:30 EET`.
pub(crate) fn shown(instant: Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_microsecond(instant.as_micros()) {
        Ok(instant) => instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => instant.to_string(),
    }
}

/// The next time of day that is still ahead.
fn next(here: &Zoned, time: Time) -> Option<DateTime> {
    let today = here.date().to_datetime(time);
    let ahead = today.to_zoned(here.time_zone().clone()).is_ok_and(|today| today > *here);
    if ahead { Some(today) } else { today.checked_add(1.day()).ok() }
}

/// A day by its name, or by its date. A day of the week is the next one, never today.
fn day(said: &str, today: Date) -> Option<Date> {
    let lower = said.to_lowercase();
    match &*lower {
        "today" => return Some(today),
        "tomorrow" => return today.checked_add(1.day()).ok(),
        _ => {}
    }
    if let Some(weekday) = weekday(&lower) {
        return today.nth_weekday(1, weekday).ok();
    }
    let mut parts = said.split('-').map(str::parse::<i16>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if parts.next().is_some() {
        return None;
    }
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn weekday(said: &str) -> Option<Weekday> {
    let days = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let meant = |name: &str| said.len() >= 3 && name.starts_with(said);
    days.into_iter().find(|(name, _)| meant(name)).map(|(_, day)| day)
}

/// `9:00`, `09:00` or `09:00:30`.
fn time(said: &str) -> Option<Time> {
    let mut parts = said.split(':');
    let mut number = || -> Option<Option<i8>> {
        let Some(part) = parts.next() else { return Some(None) };
        let digits = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if digits { part.parse().ok().map(Some) } else { None }
    };
    let (hour, minute, second) = (number()??, number()??, number()?.unwrap_or(0));
    if parts.next().is_some() {
        return None;
    }
    Time::new(hour, minute, second, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_athens(text: &str) -> Result<String, String> {
        let zone = TimeZone::get("Europe/Athens").expect("a zone");
        // A Wednesday, 11:00 there.
        let now: Timestamp = "2026-11-18T09:00:00Z".parse().expect("a time");
        read(text, now, &zone).map(|instant| instant.to_string())
    }

    #[test]
    fn times_are_those_of_the_zone() {
        for (said, meant) in [
            ("2026-11-15T08:30:00Z", "2026-11-15T08:30:00Z"),
            ("2026-11-15T08:30:00+01:00", "2026-11-15T07:30:00Z"),
            ("2026-11-18 09:00", "2026-11-18T07:00:00Z"),
            ("2026-11-18T9:00:30", "2026-11-18T07:00:30Z"),
            ("2026-7-1 9:00", "2026-07-01T06:00:00Z"),
            ("11:01", "2026-11-18T09:01:00Z"),
            ("11:00", "2026-11-19T09:00:00Z"),
            ("09:00", "2026-11-19T07:00:00Z"),
            ("today 9:00", "2026-11-18T07:00:00Z"),
            ("tomorrow 9:00", "2026-11-19T07:00:00Z"),
            ("Tomorrow  9:00", "2026-11-19T07:00:00Z"),
            ("wed 9:00", "2026-11-25T07:00:00Z"),
            ("thursday 23:59:59", "2026-11-19T21:59:59Z"),
            // Clocks go from 03:00 to 04:00: the time in the gap comes right after it.
            ("2027-03-28 03:30", "2027-03-28T01:30:00Z"),
            // And from 04:00 to 03:00: the first of the two.
            ("2026-10-25 03:30", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(in_athens(said).as_deref(), Ok(meant), "{said}");
        }
    }

    #[test]
    fn what_is_no_time_says_how_to_write_one() {
        for said in [
            "soon",
            "",
            "25:00",
            "9:60",
            "9",
            "9:0:0:0",
            "2026-13-01 9:00",
            "tomorrow",
            "9:00 tomorrow",
            "mo 9:00",
            "2026-11-18 9:00 am",
            "-1:00",
        ] {
            let why = in_athens(said).expect_err(said);
            assert!(why.contains("is not a time") && why.contains("'tomorrow 9:00'"), "{why}");
        }
        assert!(in_athens("tomorrow").is_err_and(|why| why.contains("no time of day")));
    }
}
