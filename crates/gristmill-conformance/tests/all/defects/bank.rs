//! The bug bank: every defect, and which of suite, histories and judge catches it,
//! how fast.
//!
//! The defects are switched on in a wrapper of this test program, so that nothing of
//! them is in what is shipped.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gristmill_conformance::{history, judge};

use super::defect::Defect;
use super::flawed::FlawedHarness;
use super::{THREAD, failing, silence, try_on};

/// The judge's runs go on for so long, each time longer until something is found.
const TIMES: [u64; 3] = [2, 5, 12];
/// Handles of the store that clients share, as processes would.
const HANDLES: usize = 3;

/// The first rule that the judge finds broken, and after how many seconds of a run.
fn judged(defect: Option<Defect>, times: &[u64]) -> Option<(String, u64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    times.iter().find_map(|seconds| {
        let folder = tempfile::tempdir().expect("a folder");
        let handles = FlawedHarness::new(defect).live(HANDLES);
        let time = Duration::from_secs(*seconds);
        let run = judge::together(&handles, folder.path(), "flawed", *seconds, time, true);
        if let Err(why) = runtime.block_on(run) {
            return Some((why, *seconds));
        }
        let verdict = judge::judge_folder(folder.path()).expect("a run");
        let most = verdict.counted.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(rule, _)| (rule, *seconds))
    })
}

/// What people get wrong first, and what no behaviour can see because it takes many
/// at once.
const CLASSICS: &[Defect] = &[
    Defect::SettlesWithoutToken,
    Defect::ReclaimsUnguarded,
    Defect::ChecksThenInserts,
    Defect::AnswersFromACache,
    Defect::LosesEveryFortieth,
    Defect::GivesOutTwice,
    Defect::FiresTwice,
    Defect::CountsDoneTwice,
    Defect::PutsFollowUpsFirst,
    Defect::ShortensLeases,
    Defect::IgnoresConcurrency,
    Defect::IgnoresRate,
    Defect::IgnoresWindows,
    Defect::KeepsStaleResults,
    Defect::PausesOneProcess,
    Defect::RunsKeysSideBySide,
];

#[test]
fn the_judge_catches_the_classics() {
    let missed: Vec<Defect> = std::thread::scope(|scope| {
        let tried = CLASSICS
            .iter()
            .map(|defect| scope.spawn(move || (*defect, judged(Some(*defect), &TIMES))));
        let tried: Vec<_> = tried.collect();
        let ended = tried.into_iter().map(|one| one.join().expect("no panic"));
        ended.filter(|(_, found)| found.is_none()).map(|(defect, _)| defect).collect()
    });
    assert_eq!(missed, []);
}

#[test]
fn without_a_defect_the_judge_finds_nothing() {
    assert_eq!(judged(None, &[3]), None);
}

/// One row of the table.
struct Row {
    defect: Defect,
    suite: Option<(usize, &'static str, Duration)>,
    histories: Option<Duration>,
    judge: Option<(String, u64)>,
}

/// Runs at once: they rest most of the time.
const AT_ONCE: usize = 8;

/// What the judge says of each defect.
fn judged_all() -> Vec<Option<(String, u64)>> {
    let tried = Defect::ALL.chunks(AT_ONCE).flat_map(|some| {
        std::thread::scope(|scope| {
            let tried = some.iter().map(|defect| scope.spawn(|| judged(Some(*defect), &TIMES)));
            let tried: Vec<_> = tried.collect();
            tried.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
        })
    });
    tried.collect()
}

fn row(defect: Defect, judge: Option<(String, u64)>) -> Row {
    // The first behaviour that catches it, and how long it took to get there.
    let begun = Instant::now();
    let caught = failing(Some(defect));
    let caught: Vec<_> =
        (caught.into_iter()).filter(|(behaviour, _)| try_on(None, *behaviour).is_ok()).collect();
    let suite =
        caught.first().map(|(behaviour, _)| (caught.len(), behaviour.name, begun.elapsed()));
    let begun = Instant::now();
    let found = history::difference(&FlawedHarness::new(Some(defect)), 2_000);
    let histories = found.map(|_| begun.elapsed());
    Row { defect, suite, histories, judge }
}

/// Writes the table to `target/bug-bank.md`, and asserts that every defect is
/// caught.
#[test]
#[ignore = "long: tries every defect on all three"]
fn long_bug_bank_is_caught_whole() {
    silence();
    let tried = std::thread::Builder::new().name(THREAD.to_owned()).spawn(|| {
        let judged = Defect::ALL.iter().zip(judged_all());
        judged.map(|(defect, judged)| row(*defect, judged)).collect::<Vec<Row>>()
    });
    let rows = tried.expect("a thread").join().expect("no panic");
    let mut table = String::from("| defect | suite | histories | judge |\n|---|---|---|---|\n");
    for row in &rows {
        let suite = row.suite.as_ref().map_or("–".to_owned(), |(count, name, _)| {
            format!(
                "`{name}`{}",
                if *count > 1 { format!(" and {} more", count - 1) } else { String::new() }
            )
        });
        let histories =
            row.histories.map_or("–".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()));
        let judge =
            row.judge.as_ref().map_or("–".to_owned(), |(rule, s)| format!("*{rule}*, {s} s"));
        let _ = writeln!(table, "| {:?} | {suite} | {histories} | {judge} |", row.defect);
    }
    let by = |caught: fn(&Row) -> bool| rows.iter().filter(|row| caught(row)).count();
    let _ = writeln!(
        table,
        "\n{} defects: {} caught by the suite, {} by the histories, {} by the judge.",
        rows.len(),
        by(|row| row.suite.is_some()),
        by(|row| row.histories.is_some()),
        by(|row| row.judge.is_some()),
    );
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let place = target.parent().unwrap_or(&target).join("bug-bank.md");
    std::fs::write(&place, &table).expect("the table");
    println!("{table}");
    let nobody = |row: &&Row| row.suite.is_none() && row.histories.is_none() && row.judge.is_none();
    let missed: Vec<Defect> = rows.iter().filter(nobody).map(|row| row.defect).collect();
    assert_eq!(missed, []);
    assert!(rows.len() >= 60, "{} defects", rows.len());
}
