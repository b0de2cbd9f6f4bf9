//! The last hour of a queue, minute by minute: as numbers and as a small picture.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::{Minute, Waits};
use gristmill::{QueueName, Timestamp};
use maud::{Markup, html};

use super::words::number;
use crate::message::stats::WAITS;
use crate::problem::Answer;
use crate::service::Service;

/// How long a look is good for.
const FRESH: Duration = Duration::from_secs(4);
/// How far back it goes.
const BACK: Duration = Duration::from_secs(3600);
/// The same in minutes.
const MINUTES: usize = 60;

/// Of them those whose waits are told.
const LATELY: u64 = 15;

/// A look at a queue's minutes, and when it was taken.
type Look = (Instant, Arc<Vec<Minute>>);

/// What was seen of queues lately.
#[derive(Debug, Default)]
pub(crate) struct Trends(Mutex<HashMap<QueueName, Look>>);

impl Trends {
    /// A queue's last hour, at most some seconds old: a hundred who look are one question.
    pub(crate) async fn of(&self, service: &Service, queue: &QueueName) -> Answer<Trend> {
        let known = {
            let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.get(queue).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, m)| m.clone())
        };
        let now = crate::route::now();
        if let Some(minutes) = known {
            return Ok(Trend::new(&minutes, now));
        }
        let minutes = Arc::new(service.store.minutes(queue, BACK).await?);
        let trend = Trend::new(&minutes, now);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What nobody looked at for long is forgotten.
        seen.retain(|_, (at, _)| at.elapsed() < BACK);
        seen.insert(queue.clone(), (Instant::now(), minutes));
        Ok(trend)
    }
}

/// An hour, a value for each minute; the last one is the minute that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trend {
    put: [u64; MINUTES],
    done: [u64; MINUTES],
    failed: [u64; MINUTES],
    /// How long what was claimed in the last quarter of an hour had been due.
    waits: Waits,
    /// How much of the last minute is over.
    over: f64,
}

impl Trend {
    pub(crate) fn new(minutes: &[Minute], now: Timestamp) -> Self {
        let zero = [0; MINUTES];
        let last = now.minute();
        let over = now.since(last).as_secs_f64() / 60.0;
        let waits = Waits::default();
        let mut trend = Trend { put: zero, done: zero, failed: zero, waits, over };
        for minute in minutes {
            let ago = last.since(minute.at).as_secs() / 60;
            let at = usize::try_from(ago).ok().and_then(|ago| (MINUTES - 1).checked_sub(ago));
            let Some(at) = at else { continue };
            if ago < LATELY {
                trend.waits.add(&minute.waits);
            }
            for (values, value) in [
                (&mut trend.put, minute.put),
                (&mut trend.done, minute.done),
                (&mut trend.failed, minute.failed),
            ] {
                if let Some(slot) = values.get_mut(at) {
                    *slot += value;
                }
            }
        }
        trend
    }

    /// Two queues' minutes together.
    pub(crate) fn add(&mut self, other: &Trend) {
        self.waits.add(&other.waits);
        for (all, one) in [
            (&mut self.put, &other.put),
            (&mut self.done, &other.done),
            (&mut self.failed, &other.failed),
        ] {
            for (sum, value) in all.iter_mut().zip(one) {
                *sum += value;
            }
        }
    }

    /// Tasks put within the last sixty seconds, about.
    pub(crate) fn put_rate(&self) -> u64 {
        self.rate(&self.put)
    }

    /// Attempts done within the last sixty seconds, about.
    pub(crate) fn done_rate(&self) -> u64 {
        self.rate(&self.done)
    }

    /// The minute that goes on, and as much of the one before as is missing of it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate, shown as a whole number"
    )]
    fn rate(&self, values: &[u64; MINUTES]) -> u64 {
        let [.., before, last] = values;
        (*last as f64 + *before as f64 * (1.0 - self.over)).round() as u64
    }

    /// Tasks that failed for good in the last quarter of an hour, and in the one before.
    pub(crate) fn failures(&self) -> (u64, u64) {
        let quarter = |skip: usize| self.failed.iter().rev().skip(skip).take(15).sum();
        (quarter(0), quarter(15))
    }

    /// Within what half of the tasks that were claimed lately had been due, and 95 in 100:
    /// the names of their buckets. Nothing where none was claimed.
    pub(crate) fn waited(&self) -> Option<(&'static str, &'static str)> {
        let within = |hundredths: u64| {
            let wanted = (self.waits.total() * hundredths).div_ceil(100).max(1);
            let mut sum = 0;
            let mut buckets = self.waits.0.iter().zip(WAITS);
            buckets.find_map(|(n, name)| {
                sum += n;
                (sum >= wanted).then_some(name)
            })
        };
        Some((within(50)?, within(95)?))
    }

    /// The hour as a picture: what was done as an area, what was put as a line over it, and
    /// a mark below each minute with failures.
    pub(crate) fn spark(&self, of: &str) -> Markup {
        let most = self.put.iter().chain(&self.done).copied().max().unwrap_or_default();
        let failed: u64 = self.failed.iter().sum();
        let words = if most == 0 && failed == 0 {
            format!("{of}: nothing in the last hour")
        } else {
            let (put, done): (u64, u64) = (self.put.iter().sum(), self.done.iter().sum());
            format!(
                "{of}, last hour: {} put, {} done, {} failed; at most {} in a minute",
                number(put),
                number(done),
                number(failed),
                number(most)
            )
        };
        let area = format!("M0 20{}L118 20Z", line(&self.done, most));
        let put = line(&self.put, most);
        html! {
            svg.spark viewBox="0 0 118 24" width="118" height="24" role="img" aria-label=(words) {
                title { (words) }
                path.done d=(area) {}
                @if most > 0 { path.put d=(format!("M{}", put.trim_start_matches('L'))) {} }
                @for (at, n) in self.failed.iter().enumerate() {
                    @if *n > 0 { rect.failed x=(at * 2) y="21" width="2" height="3" {} }
                }
            }
        }
    }
}

/// Points from left to right, the highest at the top.
fn line(values: &[u64; MINUTES], most: u64) -> String {
    let mut text = String::with_capacity(MINUTES * 8);
    for (at, value) in values.iter().enumerate() {
        let height = (value * 18).checked_div(most).unwrap_or_default();
        let _ = write!(text, "L{} {}", at * 2, 20 - height);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(now: Timestamp, ago: u64, put: u64, done: u64, failed: u64) -> Minute {
        let at = now.minute().before(Duration::from_secs(ago * 60));
        Minute { put, done, failed, ..Minute::new(at) }
    }

    #[test]
    fn rates_slide_over_the_minute() {
        let now = Timestamp::from_micros(3_600_000_000 * 24).after(Duration::from_secs(15));
        let minutes =
            [minute(now, 99, 9, 9, 9), minute(now, 1, 60, 40, 0), minute(now, 0, 10, 5, 0)];
        let trend = Trend::new(&minutes, now);
        assert_eq!((trend.put_rate(), trend.done_rate()), (55, 35), "10 + 60 * 3/4");
    }

    #[test]
    fn failures_are_told_by_quarters() {
        let now = Timestamp::from_micros(3_600_000_000 * 24);
        let minutes = [
            minute(now, 40, 0, 0, 7),
            minute(now, 16, 0, 0, 2),
            minute(now, 14, 0, 0, 3),
            minute(now, 0, 0, 0, 1),
        ];
        let mut trend = Trend::new(&minutes, now);
        assert_eq!(trend.failures(), (4, 2));
        trend.add(&trend.clone());
        assert_eq!(trend.failures(), (8, 4));
    }

    #[test]
    fn waits_are_told_of_the_last_quarter() {
        let now = Timestamp::from_micros(3_600_000_000 * 24);
        let waited = |ago: u64, span: Duration, times: usize| {
            let mut minute = minute(now, ago, 0, 0, 0);
            (0..times).for_each(|_| minute.waits.count(span));
            minute
        };
        assert_eq!(Trend::new(&[], now).waited(), None);
        let (soon, late) = (Duration::from_millis(20), Duration::from_secs(40));
        let old = waited(20, Duration::from_secs(9000), 500);
        let most = [old, waited(3, soon, 94), waited(1, late, 6)];
        assert_eq!(Trend::new(&most, now).waited(), Some(("100ms", "1m")));
        let few = [old, waited(3, soon, 95), waited(1, late, 5)];
        assert_eq!(Trend::new(&few, now).waited(), Some(("100ms", "100ms")));
    }

    #[test]
    fn the_picture_says_what_it_shows() {
        let now = Timestamp::from_micros(3_600_000_000 * 24);
        let quiet = Trend::new(&[], now).spark("emails").into_string();
        assert!(quiet.contains("emails: nothing in the last hour"), "{quiet}");
        let busy = Trend::new(&[minute(now, 3, 8, 4, 1)], now).spark("emails").into_string();
        assert!(busy.contains("8 put, 4 done, 1 failed; at most 8 in a minute"), "{busy}");
        assert!(busy.contains("class=\"failed\" x=\"112\""), "{busy}");
        assert!(!busy.contains("style="), "{busy}");
    }
}
