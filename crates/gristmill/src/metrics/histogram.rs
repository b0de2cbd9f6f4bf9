//! A histogram of durations, in the buckets a cycle is judged by: from a
//! millisecond to well beyond the ten seconds that are reported as slow.

use std::fmt::Write as _;
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

/// How many durations fell into which bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// Not summed up: each duration is in one bucket.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl Histogram {
    pub(super) fn observe(&mut self, took: Duration) {
        let fits = |bound: u64| took <= Duration::from_millis(bound);
        let bucket = BOUNDS.iter().position(|(bound, _)| fits(*bound));
        if let Some(bucket) = bucket.and_then(|bucket| self.buckets.get_mut(bucket)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += took;
    }

    pub(super) fn write(&self, text: &mut String, name: &str, label: &str) {
        let mut below = 0;
        for ((_, bound), bucket) in BOUNDS.iter().zip(self.buckets) {
            below += bucket;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}_bucket{{{label},le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(text, "{name}_bucket{{{label},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(text, "{name}_sum{{{label}}} {}", self.sum.as_secs_f64());
        let _ = writeln!(text, "{name}_count{{{label}}} {}", self.count);
    }
}
