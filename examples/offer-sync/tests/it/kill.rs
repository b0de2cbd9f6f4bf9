//! Workers that are killed in the middle of batches: what they had is done by others,
//! soon, and nothing twice.

use std::time::{Duration, Instant};

use crate::shop::{STORES, Shop};

/// One run: twelve batches, two workers, of which one or both are killed somewhere.
fn a_run_with_kills(store: &'static str, run: usize) {
    let shop = Shop::with(store, 120);
    shop.run(&["put", "--sync", "12", "--limit", "10"]);
    let work = ["work", "--processors", "2", "--lease", "400", "--pause", "10"];
    let mut one = shop.start(&work);
    one.says(" has ", 1);
    let mut two = shop.start(&work);
    // At the beginning of a batch, or at its end, when only its settlement is missing.
    match run % 3 {
        0 => one.says(" wrote ", 1),
        more => one.says(" has ", more),
    }
    one.kill();
    let mut killed = 1;
    if run % 2 == 1 {
        two.says(" has ", 1);
        two.kill();
        killed += 1;
    }
    shop.drain(&["--lease", "400", "--pause", "1"]);
    let said = format!("run {run} on {store}");
    assert_eq!(shop.number("SELECT count(*) FROM offer WHERE synced <> 1"), 0, "{said}");
    // In hand again only because a worker died, or lost its lease, in the middle.
    let again = shop.number("SELECT sum(taken) - 120 FROM offer");
    let lost = shop.number("SELECT sum(rows - coalesce(marked, 0)) FROM slice");
    assert_eq!(again, lost, "{said}");
    let workers = "SELECT count(DISTINCT worker) FROM slice WHERE ended IS NULL";
    assert!(shop.number(workers) <= killed, "{said}");
}

#[test]
fn twenty_runs_with_kills_mark_every_offer_once() {
    // Most of a run is waiting for leases to run out.
    std::thread::scope(|scope| {
        for store in STORES {
            scope.spawn(move || (0..10).for_each(|run| a_run_with_kills(store, run)));
        }
    });
}

/// A machine that hangs for longer than the lease, and then goes on where it was.
#[test]
fn a_worker_that_slept_past_its_lease_marks_nothing_again() {
    for store in STORES {
        let shop = Shop::with(store, 20);
        shop.run(&["put", "--sync", "2", "--limit", "10"]);
        let work = ["work", "--processors", "2", "--lease", "400", "--pause", "1000"];
        let mut sleeper = shop.start(&work);
        sleeper.says(" has ", 2);
        sleeper.signal("-STOP");
        shop.drain(&["--lease", "400", "--pause", "1"]);
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE synced <> 1"), 0, "{store}");
        sleeper.signal("-CONT");
        // Both of its batches come to an end: they write nothing, or hear that they are lost.
        shop.run(&["put", "--sync", "1", "--limit", "10"]);
        sleeper.says(" has 0 rows", 1);
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE synced <> 1"), 0, "{store}");
    }
}

#[test]
fn a_dead_workers_slots_are_free_within_seconds() {
    for store in STORES {
        let shop = Shop::with(store, 60);
        shop.run(&["put", "--sync", "6", "--limit", "10"]);
        let mut dead = shop.start(&["work", "--pause", "600000"]);
        dead.says(" has ", 3);
        // Who drains meanwhile is told why nothing was done.
        let drained = shop.run(&["work", "--drain"]);
        assert_eq!(drained.trim(), "0 done, 0 not done, 3 in another worker's hands", "{store}");
        let mut live = shop.start(&["work", "--pause", "1"]);
        let killed = Instant::now();
        dead.kill();
        // All slots are the dead one's: nothing goes on before they are free.
        live.says(" wrote ", 6);
        let took = killed.elapsed();
        assert!(took < Duration::from_secs(20), "{store}: {took:?}");
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE synced <> 1"), 0, "{store}");
        let picture = shop.run(&["picture"]);
        assert!(picture.contains("xxx") && picture.contains("3 never ended"), "{picture}");
    }
}
