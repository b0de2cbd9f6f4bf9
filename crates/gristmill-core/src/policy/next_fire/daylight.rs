//! Daylight saving: around every jump of a zone's clocks, the search and the
//! oracle name the same fires.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::tz::TimeZone;

use super::FireTimes;
use super::oracle::{Expression, minutes};
use crate::{Missed, Rule, Timestamp};

/// Fixed times in and around the hours at which clocks jump, and everything
/// that follows real time.
const EXPRESSIONS: &[&str] = &[
    "0 0 * * *",
    "30 0 * * *",
    "59 23 * * *",
    "15,45 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "59 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "15,45 2 * * *",
    "0,30 1,2,3 * * *",
    "0 3 * * *",
    "30 3 * * *",
    "0 4,16 * * *",
    "30 2 * * 0",
    "30 2 * * 1-6",
    "0 0 1,15 * 0",
    "30 2 25-31 3,10 *",
    "0 12 * * *",
    "0,1,2,3,4,5,6,7,8,9 0,1,2,3 * * *",
    "*/20 2 * * *",
    "*/30 1 * * *",
    "*/15 0-3 * * *",
    "10-20 1 * * 0,6",
    "0 * * * *",
    "30 * * * *",
    "30 */2 * * *",
    "0 1-5 * * *",
    "*/7 * * * *",
    "45 0-23/3 * * 7",
    "5 2-4,23 * 3-11 *",
    "* 2 * * *",
];

/// Zones of every kind: jumps at midnight, at one, two and three o'clock, of
/// half an hour and of two hours, twice a year and around Ramadan, both
/// hemispheres, and one that never jumps.
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Athens",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Chisinau",
    "Europe/Dublin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Asuncion",
    "America/Havana",
    "America/Nuuk",
    "America/St_Johns",
    "Asia/Beirut",
    "Asia/Gaza",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Pacific/Norfolk",
];

const DAY: i64 = 1_440;

fn micros(minute: i64) -> Timestamp {
    Timestamp::from_micros(minute * 60_000_000)
}

/// Compares both around every jump from 2020 to 2037; returns how many.
fn look(name: &str) -> usize {
    let zone = TimeZone::get(name).unwrap();
    let start: jiff::Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    let end: jiff::Timestamp = "2038-01-01T00:00:00Z".parse().unwrap();
    let read: Vec<(&str, FireTimes, Expression)> = EXPRESSIONS
        .iter()
        .map(|text| {
            let times = FireTimes::new(&Rule::Cron((*text).to_owned()), name).unwrap();
            (*text, times, Expression::read(text))
        })
        .collect();
    let mut jumps = 0;
    for jump in zone.following(start).take_while(|jump| jump.timestamp() < end) {
        jumps += 1;
        let middle = jump.timestamp().as_second().div_euclid(60);
        let (from, to) = (middle - DAY, middle + DAY);
        // The oracle starts earlier: another jump may lie just before.
        let span = minutes(&zone, from - DAY, to);
        for (text, times, oracle) in &read {
            let fires = oracle.fires(&span);
            let wanted: Vec<Timestamp> =
                fires.into_iter().filter(|minute| *minute >= from).map(micros).collect();
            let first = times.after(Timestamp::from_micros(micros(from).as_micros() - 1));
            let found: Vec<Timestamp> = std::iter::successors(first, |at| times.after(*at))
                .take_while(|at| *at < micros(to))
                .collect();
            assert_eq!(found, wanted, "'{text}' in {name} around {}", jump.timestamp());
            // Looking back finds what looking ahead found.
            let (floor, now) = (micros(from).as_micros() - 1, micros(to).as_micros() - 1);
            let (floor, now) = (Timestamp::from_micros(floor), Timestamp::from_micros(now));
            let back = times.due(floor, now, Missed::All).fires;
            let last = &wanted[wanted.len().saturating_sub(super::MISSED_MAX)..];
            assert_eq!(back, last, "'{text}' in {name} back from {now}");
        }
    }
    jumps
}

/// Looks at all of them on two threads.
fn look_at_all(zones: &[String]) -> usize {
    let (next, jumps) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(zone) = zones.get(next.fetch_add(1, Ordering::Relaxed)) {
                    jumps.fetch_add(look(zone), Ordering::Relaxed);
                }
            });
        }
    });
    jumps.into_inner()
}

#[test]
fn no_fire_is_missed_or_doubled_when_clocks_jump() {
    let zones: Vec<String> = ZONES.iter().map(|&zone| zone.to_owned()).collect();
    let jumps = look_at_all(&zones);
    assert!(jumps > 500, "{jumps} jumps");
}

#[test]
#[ignore = "long: every zone there is"]
fn no_fire_is_missed_or_doubled_in_any_zone() {
    // One thread of a debug build would be at it for an hour.
    if std::env::var_os("GRISTMILL_LONG").is_none() {
        return;
    }
    let zones: Vec<String> =
        jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    assert!(zones.len() > 400, "{} zones", zones.len());
    let jumps = look_at_all(&zones);
    assert!(jumps > 5_000, "{jumps} jumps");
}
