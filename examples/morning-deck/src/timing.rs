//! When a briefing is due: at its time of day, by its reader's clock, once a
//! day or once a week.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// How late a daily briefing may come on the day after: it was not reached
/// before midnight because the queue was full, or nobody was there at 23:59.
const DAILY_GRACE: SignedDuration = SignedDuration::from_hours(1);
/// How late a weekly one may come. Without, a day of rest for the machine would
/// cost its reader a week.
const WEEKLY_GRACE: SignedDuration = SignedDuration::from_hours(3 * 24);
/// Days back that may be within the grace.
const LOOK_BACK: i8 = 4;
/// Days ahead in which even a weekly one that came today comes again.
const LOOK_AHEAD: i8 = 8;

/// When a briefing is wanted.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The reader's zone.
    pub zone: TimeZone,
    /// The time of day.
    pub at: Time,
    /// The day of the week; every day without.
    pub weekday: Option<Weekday>,
    /// When the reader asked for it.
    pub created: Timestamp,
}

impl Timing {
    /// The reader's day it is due for now, if it is; `last_day` is the one it
    /// was last executed for.
    ///
    /// The clock on the reader's wall decides. So a time that clocks jump over
    /// comes right after the gap, and one that they show twice comes once.
    pub fn due_day(&self, now: Timestamp, last_day: Option<Date>) -> Option<Date> {
        let here = now.to_zoned(self.zone.clone());
        let today = here.date();
        let is_open = |day: Date| {
            self.weekday.is_none_or(|weekday| day.weekday() == weekday)
                && last_day.is_none_or(|last| last < day)
        };
        if is_open(today) && here.time() >= self.at {
            return Some(today);
        }
        let grace = if self.weekday.is_some() { WEEKLY_GRACE } else { DAILY_GRACE };
        let days = (1..=LOOK_BACK).filter_map(|back| today.checked_sub(back.days()).ok());
        days.filter(|day| is_open(*day)).find(|day| {
            let wanted = day.to_datetime(self.at).to_zoned(self.zone.clone());
            wanted.is_ok_and(|wanted| {
                let wanted = wanted.timestamp();
                self.created <= wanted && now.duration_since(wanted) <= grace
            })
        })
    }
}

impl Timing {
    /// When it comes next, if it is not due now; `last_day` as above.
    pub fn next(&self, now: Timestamp, last_day: Option<Date>) -> Option<jiff::Zoned> {
        if self.due_day(now, last_day).is_some() {
            return Some(now.to_zoned(self.zone.clone()));
        }
        let today = now.to_zoned(self.zone.clone()).date();
        let days = (0..=LOOK_AHEAD).filter_map(|ahead| today.checked_add(ahead.days()).ok());
        let wanted = days
            .filter(|day| self.weekday.is_none_or(|weekday| day.weekday() == weekday))
            .filter(|day| last_day.is_none_or(|last| last < *day))
            .filter_map(|day| day.to_datetime(self.at).to_zoned(self.zone.clone()).ok());
        let mut wanted = wanted.filter(|wanted| wanted.timestamp() > now);
        wanted.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, time};

    fn daily(zone: &str, at: Time) -> Timing {
        let zone = TimeZone::get(zone).expect("a zone");
        Timing { zone, at, weekday: None, created: Timestamp::UNIX_EPOCH }
    }

    fn now(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn it_is_due_once_its_time_has_passed_in_the_reader_s_zone() {
        let athens = daily("Europe/Athens", time(7, 0, 0, 0));
        let yesterday = Some(date(2026, 1, 4));
        assert_eq!(athens.due_day(now("2026-01-05T04:59:59Z"), yesterday), None);
        let day = Some(date(2026, 1, 5));
        assert_eq!(athens.due_day(now("2026-01-05T05:00:00Z"), yesterday), day);
        assert_eq!(athens.due_day(now("2026-01-05T05:00:00Z"), None), day);
        let denver = daily("America/Denver", time(7, 0, 0, 0));
        assert_eq!(denver.due_day(now("2026-01-05T05:00:00Z"), yesterday), None);
        assert_eq!(denver.due_day(now("2026-01-05T14:00:00Z"), yesterday), day);
    }

    #[test]
    fn it_is_not_due_again_on_the_day_it_was_executed() {
        let athens = daily("Europe/Athens", time(7, 0, 0, 0));
        let today = Some(date(2026, 1, 5));
        for hour in 5..22 {
            let when = now(&format!("2026-01-05T{hour:02}:30:00Z"));
            assert_eq!(athens.due_day(when, today), None, "{when}");
        }
        assert_eq!(athens.due_day(now("2026-01-06T05:00:00Z"), today), Some(date(2026, 1, 6)));
    }

    #[test]
    fn the_next_one_is_today_tomorrow_or_next_week() {
        let athens = daily("Europe/Athens", time(7, 0, 0, 0));
        let next = |timing: &Timing, at: &str, last| {
            timing.next(now(at), last).map(|next| next.datetime().to_string())
        };
        let told = |text: &str| Some(text.to_owned());
        let yesterday = Some(date(2026, 1, 4));
        let today = Some(date(2026, 1, 5));
        let seven = "2026-01-05T07:00:00";
        assert_eq!(next(&athens, "2026-01-05T04:00:00Z", yesterday), told(seven));
        assert_eq!(next(&athens, "2026-01-05T06:00:00Z", yesterday), told("2026-01-05T08:00:00"));
        assert_eq!(next(&athens, "2026-01-05T06:00:00Z", today), told("2026-01-06T07:00:00"));
        let weekly = Timing { weekday: Some(Weekday::Monday), ..athens };
        assert_eq!(next(&weekly, "2026-01-05T06:00:00Z", today), told("2026-01-12T07:00:00"));
    }

    #[test]
    fn a_weekly_one_also_waits_for_its_day_of_the_week() {
        // In Auckland it is Monday while it is still Sunday in UTC.
        let weekday = Some(Weekday::Monday);
        let timing = Timing { weekday, ..daily("Pacific/Auckland", time(6, 0, 0, 0)) };
        assert_eq!(timing.due_day(now("2026-01-04T16:59:00Z"), None), None);
        let monday = Some(date(2026, 1, 5));
        assert_eq!(timing.due_day(now("2026-01-04T17:00:00Z"), None), monday);
        assert_eq!(timing.due_day(now("2026-01-05T17:00:00Z"), monday), None, "Tuesday there");
        assert_eq!(timing.due_day(now("2026-01-04T18:00:00Z"), monday), None);
        assert_eq!(timing.due_day(now("2026-01-11T17:00:00Z"), monday), Some(date(2026, 1, 12)));
    }

    #[test]
    fn clocks_that_change_neither_skip_a_day_nor_repeat_it() {
        let berlin = daily("Europe/Berlin", time(2, 30, 0, 0));
        // 2026-03-29: from 02:00 straight to 03:00.
        let before = Some(date(2026, 3, 28));
        assert_eq!(berlin.due_day(now("2026-03-29T00:59:59Z"), before), None);
        let gap = Some(date(2026, 3, 29));
        assert_eq!(berlin.due_day(now("2026-03-29T01:00:00Z"), before), gap);
        // 2026-10-25: 02:30 comes twice, an hour apart.
        let before = Some(date(2026, 10, 24));
        let twice = Some(date(2026, 10, 25));
        assert_eq!(berlin.due_day(now("2026-10-25T00:30:00Z"), before), twice);
        assert_eq!(berlin.due_day(now("2026-10-25T01:30:00Z"), twice), None);
    }

    #[test]
    fn one_that_was_not_reached_before_midnight_is_not_lost() {
        let late = daily("UTC", time(23, 59, 0, 0));
        let before = Some(date(2026, 1, 4));
        assert_eq!(late.due_day(now("2026-01-06T00:10:00Z"), before), Some(date(2026, 1, 5)));
        assert_eq!(late.due_day(now("2026-01-06T01:00:00Z"), before), None, "too late by now");
        let executed = Some(date(2026, 1, 5));
        assert_eq!(late.due_day(now("2026-01-06T00:10:00Z"), executed), None);
        assert_eq!(late.due_day(now("2026-01-06T23:59:00Z"), executed), Some(date(2026, 1, 6)));
        let new = Timing { created: now("2026-01-06T00:05:00Z"), ..late };
        assert_eq!(new.due_day(now("2026-01-06T00:10:00Z"), None), None, "not asked for then");
    }

    #[test]
    fn a_weekly_one_whose_day_was_missed_comes_late_instead_of_in_a_week() {
        let weekday = Some(Weekday::Monday);
        let timing = Timing { weekday, ..daily("UTC", time(6, 0, 0, 0)) };
        let monday = Some(date(2026, 1, 5));
        assert_eq!(timing.due_day(now("2026-01-07T22:00:00Z"), None), monday, "on Wednesday");
        assert_eq!(timing.due_day(now("2026-01-07T22:00:00Z"), monday), None);
        assert_eq!(timing.due_day(now("2026-01-08T06:00:01Z"), None), None, "too late by now");
        let new = Timing { created: now("2026-01-06T00:00:00Z"), ..timing };
        assert_eq!(new.due_day(now("2026-01-07T22:00:00Z"), None), None, "not asked for then");
    }
}
