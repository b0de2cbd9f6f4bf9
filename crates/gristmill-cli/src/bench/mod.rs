//! The benchmark: each rate beside the bare limit, measured in the same run.
//!
//! A ratio is the median of alternating rounds, ours and bare by turns, so that
//! a machine that is busy for a while is busy for both. Durability is always
//! on; a row of a store that keeps nothing says so.

mod across;
mod cost;
mod files;
mod fresh;
mod http;
mod limits;
mod load;
mod memory;
mod postgres;
mod returned;
mod sqlite;
mod start;
mod step;
mod worker;

use std::time::Duration;

pub(crate) use across::produce;
pub(crate) use cost::Cost;
pub(crate) use load::BenchError;
pub(crate) use step::{Step, Target};

/// What a process does that a measurement has started to put from outside.
pub(crate) async fn put_when_told(store: &str, tasks: usize) -> Result<(), BenchError> {
    postgres::producers::put_when_told(store, tasks).await
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Tasks in a bulk round.
    pub(crate) tasks: usize,
    /// Alternating rounds.
    pub(crate) rounds: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { tasks: 200_000, rounds: 5 }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Rates and times.
    pub(crate) rows: Vec<Row>,
    /// What they cost beside time.
    pub(crate) costs: Vec<Cost>,
}

impl Measured {
    pub(crate) fn add(&mut self, more: Measured) {
        self.rows.extend(more.rows);
        self.costs.extend(more.costs);
    }
}

impl From<Row> for Measured {
    fn from(row: Row) -> Self {
        Measured { rows: vec![row], costs: Vec::new() }
    }
}

/// One measured rate.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// What was done.
    pub(crate) name: &'static str,
    /// In words.
    pub(crate) what: &'static str,
    /// Tasks a second, ours.
    pub(crate) rate: f64,
    /// Tasks a second, bare statements.
    pub(crate) bare: Option<f64>,
    /// Ours over bare.
    pub(crate) ratio: Option<f64>,
    /// Whether an answer survives a power cut.
    pub(crate) durable: bool,
    /// Of a row that measures a time: its distribution. The rate is then how
    /// often it fits into a second.
    pub(crate) latency: Option<Latency>,
}

/// How long something took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Latency {
    /// The middle one.
    pub(crate) p50: Duration,
    /// One of a hundred took longer.
    pub(crate) p99: Duration,
    /// The middle one of the bare limit.
    pub(crate) bare_p50: Option<Duration>,
    /// One of a hundred of the bare limit took longer: what the disk does.
    pub(crate) bare_p99: Option<Duration>,
}

impl Latency {
    fn of(mut waits: Vec<Duration>, bare: Option<Vec<Duration>>) -> Self {
        waits.sort();
        let at = |sorted: &[Duration], percent: usize| {
            sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
        };
        let bare = bare.map(|mut bare| {
            bare.sort();
            (at(&bare, 50), at(&bare, 99))
        });
        Latency {
            p50: at(&waits, 50),
            p99: at(&waits, 99),
            bare_p50: bare.map(|(p50, _)| p50),
            bare_p99: bare.map(|(_, p99)| p99),
        }
    }
}

impl Row {
    fn against(name: &'static str, what: &'static str, rounds: Rounds) -> Self {
        let ratios = rounds.pairs.iter().map(|(ours, bare)| ours / bare).collect();
        Row {
            name,
            what,
            rate: median(rounds.pairs.iter().map(|(ours, _)| *ours).collect()),
            bare: Some(median(rounds.pairs.iter().map(|(_, bare)| *bare).collect())),
            ratio: Some(median(ratios)),
            durable: true,
            latency: None,
        }
    }

    /// A row of a time rather than a rate.
    fn late(name: &'static str, what: &'static str, latency: Latency, durable: bool) -> Self {
        // A time that is too short to be seen has no rate.
        let often = rate(1, latency.p50.max(Duration::from_micros(1)));
        let bare = latency.bare_p50.map(|bare| rate(1, bare));
        let ratio = bare.map(|bare| often / bare);
        Row { name, what, rate: often, bare, ratio, durable, latency: Some(latency) }
    }
}

/// The rates of ours and bare, a pair a round.
#[derive(Debug, Default)]
struct Rounds {
    pairs: Vec<(f64, f64)>,
}

fn rate(tasks: usize, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
    let tasks = tasks as f64;
    tasks / took.as_secs_f64().max(1e-9)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_middle_and_a_tail() {
        let waits = (1..=200).rev().map(Duration::from_millis).collect();
        let bare = Some(vec![Duration::from_millis(50)]);
        let latency = Latency::of(waits, bare);
        assert_eq!((latency.p50.as_millis(), latency.p99.as_millis()), (101, 199));
        let row = Row::late("x", "x", latency, true);
        assert_eq!(row.bare, Some(20.0));
        assert!(row.ratio.is_some_and(|ratio| (0.49..0.5).contains(&ratio)));
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds() {
        let rounds = Rounds { pairs: vec![(10.0, 10.0), (90.0, 10.0), (20.0, 10.0)] };
        let row = Row::against("x", "x", rounds);
        assert_eq!((row.rate, row.bare, row.ratio), (20.0, Some(10.0), Some(2.0)));
    }
}
