//! A worker is killed, and from then on there is only cron: `work --drain` now and
//! then. The task is back within its lease and one interval.

use std::time::{Duration, Instant};

use crate::place::{Place, eventually};

/// How long after its worker's death the task was done.
fn back_after(lease: &str, every: Duration) -> Duration {
    let place = Place::with(&[&["q", lease]]);
    place.ok(&["put", "q", "1"]);
    let worker = place.start(&["work", "q", "--exec", "sleep 1000"]);
    eventually("it runs", || place.stats("q")["processing"] == 1);
    worker.kill();
    let died = Instant::now();
    loop {
        let started = Instant::now();
        place.ok(&["work", "q", "--exec", "true", "--drain"]);
        if place.stats("q")["total"] == 0 {
            return died.elapsed();
        }
        assert!(died.elapsed() < Duration::from_secs(60), "it never came back");
        std::thread::sleep(every.saturating_sub(started.elapsed()));
    }
}

#[test]
fn an_orphan_is_back_with_the_next_drain_after_its_lease() {
    let took = back_after("lease=1s", Duration::from_secs(1));
    // The lease, an interval, and a second for a busy machine.
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
#[ignore = "takes as long as cron does: long form"]
fn long_an_orphan_is_back_within_its_lease_and_six_seconds() {
    for lease in [1, 4, 6] {
        let took = back_after(&format!("lease={lease}s"), Duration::from_secs(5));
        assert!(took < Duration::from_secs(lease + 6), "{lease} s: {took:?}");
    }
}
