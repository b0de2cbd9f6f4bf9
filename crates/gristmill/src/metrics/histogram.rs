//! A histogram of durations, in the buckets a cycle is judged by: from a
//! millisecond to well beyond the ten seconds that are reported as slow.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in milliseconds, and as Prometheus writes them in seconds.
const BOUNDS: [(u64, &str); 14] = [
    (1, "0.001"),
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1_000, "1"),
    (2_500, "2.5"),
    (5_000, "5"),
    (10_000, "10"),
    (30_000, "30"),
    (60_000, "60"),
];

/// How many durations fell into which bucket. A look while one is counted may see it in
/// its bucket and not yet in the sum.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Not summed up: each duration is in one bucket, the last for what is longer.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let fits = |bound: u64| nanos <= bound * 1_000_000;
        let bucket = BOUNDS.iter().position(|(bound, _)| fits(*bound)).unwrap_or(BOUNDS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(super) fn write(&self, text: &mut String, name: &str, label: &str) {
        let mut below = 0;
        let bounds = BOUNDS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
        for (bound, bucket) in bounds.zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}_bucket{{{label},le=\"{bound}\"}} {below}");
        }
        let sum = Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(text, "{name}_sum{{{label}}} {sum}");
        let _ = writeln!(text, "{name}_count{{{label}}} {below}");
    }
}
