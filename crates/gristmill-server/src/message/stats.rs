//! A queue's numbers.

use std::collections::BTreeMap;

use gristmill::QueueStats;
use gristmill::port::stats::WAIT_BOUNDS;
use gristmill::port::{Counters, Minute};
use serde::Serialize;
use serde_json::Map;

use super::fields::millis;

/// A queue at a glance, under the names that `gristmill stats --json` has.
#[derive(Debug, Serialize)]
pub(crate) struct StatsOut {
    queue: String,
    number: u32,
    ready: u64,
    delayed: u64,
    blocked: u64,
    processing: u64,
    failed: u64,
    total: u64,
    done_kept: u64,
    wait_ms: u64,
    /// How long it needs for what is ready: for who decides how many workers there are.
    backlog_seconds: f64,
    paused: bool,
    capacity: Option<u64>,
    can_accept: bool,
    /// What happened since the queue was declared.
    counters: Map<String, serde_json::Value>,
}

impl StatsOut {
    pub(crate) fn of(stats: &QueueStats, backlog: f64) -> Self {
        let values = stats.counters.values();
        let counters = Counters::NAMES.iter().zip(values);
        StatsOut {
            queue: stats.queue.to_string(),
            number: stats.number,
            ready: stats.ready,
            delayed: stats.delayed,
            blocked: stats.blocked,
            processing: stats.processing,
            failed: stats.failed,
            total: stats.total(),
            done_kept: stats.done_kept,
            wait_ms: millis(stats.oldest_ready.unwrap_or_default()),
            backlog_seconds: (backlog * 1_000.0).round() / 1_000.0,
            paused: stats.paused,
            capacity: stats.capacity,
            can_accept: stats.can_accept(),
            counters: counters.map(|(name, n)| ((*name).to_owned(), n.into())).collect(),
        }
    }
}

/// What happened within one minute.
#[derive(Debug, Serialize)]
pub(crate) struct MinuteOut {
    at: String,
    put: u64,
    done: u64,
    failed: u64,
    /// Tasks claimed, by how long they had been due.
    waits: BTreeMap<&'static str, u64>,
}

/// The buckets' names, in the order of `WAIT_BOUNDS`.
pub(crate) const WAITS: [&str; WAIT_BOUNDS.len() + 1] =
    ["100ms", "1s", "10s", "1m", "10m", "1h", "longer"];

impl MinuteOut {
    pub(crate) fn of(minute: &Minute) -> Self {
        let Minute { at, put, done, failed, waits } = *minute;
        let waits = WAITS.into_iter().zip(waits.0).filter(|(_, n)| *n > 0).collect();
        MinuteOut { at: at.to_string(), put, done, failed, waits }
    }
}
