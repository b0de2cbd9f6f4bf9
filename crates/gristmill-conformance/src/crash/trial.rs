//! Whole trials: a run, and what must have been seen in it to prove anything.

use std::path::Path;

use super::{KillPlan, Open, PowerPlan, Verdict, kills, power_cuts};

/// Whether the long form of tests was asked for.
#[must_use]
pub fn long() -> bool {
    std::env::var_os("GRISTMILL_LONG").is_some()
}

fn assert_sound(verdict: &Verdict) {
    println!("{:?}", verdict.tally);
    assert!(verdict.faults.is_empty(), "{:#?}", verdict.faults);
}

/// Kills processes at random, and asserts that nothing acknowledged was lost.
/// The store is left in `store` below the folder, to be looked over.
pub fn survive_kills(child: &'static str, folder: &Path, open: Open) {
    let kills_made = if long() { 300 } else { 25 };
    let plan = KillPlan { child, kills: kills_made, producers: 2, workers: 3 };
    let verdict = kills(&plan, folder, open);
    assert_sound(&verdict);
    // A run that saw too little proves nothing.
    let seen = verdict.tally;
    assert!(seen.puts > kills_made * 10, "{seen:?}");
    assert!(seen.settled > kills_made, "{seen:?}");
    assert!(seen.redelivered > kills_made / 5, "{seen:?}");
    // Who holds a task past its lease must live that long; in a short run on
    // a busy machine nobody may.
    assert!(!long() || seen.stale_tried > 10, "{seen:?}");
}

/// Cuts the power of a small file system of this kind, and asserts that nothing
/// acknowledged was lost. Needs root and loop devices.
pub fn survive_power_cuts(
    child: &'static str,
    file_system: &'static str,
    folder: &Path,
    open: Open,
) {
    let plan = PowerPlan { child, cuts: 25, file_system };
    let verdict = power_cuts(&plan, folder, open).expect("root and loop devices");
    assert_sound(&verdict);
    assert!(verdict.tally.puts > 500, "{:?}", verdict.tally);
    assert!(verdict.tally.settled > 100, "{:?}", verdict.tally);
}
