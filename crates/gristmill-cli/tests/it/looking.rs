//! Commands that only look: at what is no store, at what is damaged, and at what a
//! killed backup left.

use std::io::{Seek, SeekFrom, Write};

use serde_json::Value;

use crate::place::{Place, Running, eventually, is_alive};

/// Every command that only looks, or works on what is there.
const LOOKING: &[&[&str]] = &[
    &["stats"],
    &["list"],
    &["failed"],
    &["show", "1"],
    &["workers"],
    &["check"],
    &["doctor"],
    &["schedules"],
    &["queue", "list"],
    &["backup", "copy.db"],
    &["put", "q", "1"],
    &["pause", "q"],
    &["retry", "--all"],
    &["work", "--exec", "true", "--drain"],
];

#[test]
fn looking_at_what_is_no_store_changes_nothing() {
    let place = Place::new();
    place.write("empty.db", "");
    // The header of an SQLite file that holds no table.
    let mut header = b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20".to_vec();
    header.extend([0, 0, 0, 1, 0, 0, 0, 1]);
    header.extend([0; 12]);
    header.extend([0, 0, 0, 1, 0, 0, 0, 4]);
    header.resize(56, 0);
    header.extend([0, 0, 0, 1]);
    header.resize(100, 0);
    header.extend([13, 0, 0, 0, 0, 0x10, 0, 0]);
    header.resize(4096, 0);
    place.write("foreign.db", &header);
    for file in ["empty.db", "foreign.db"] {
        let before = std::fs::read(place.path(file)).unwrap();
        for words in LOOKING {
            let url = format!("sqlite://{file}");
            let all: Vec<&str> = words.iter().copied().chain(["--store", &url]).collect();
            let answer = place.run(&all);
            assert_eq!(answer.code, 5, "{all:?}: {answer:?}");
            assert!(answer.stderr.contains("there is no store in"), "{all:?}: {}", answer.stderr);
        }
        assert_eq!(std::fs::read(place.path(file)).unwrap(), before, "{file}");
    }
    assert!(!place.path("copy.db").exists());
}

#[test]
fn looking_at_an_empty_folder_makes_no_spool() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    for words in LOOKING.iter().filter(|words| words[0] != "backup") {
        let all: Vec<&str> = words.iter().copied().chain(["--store", "files://empty"]).collect();
        let answer = place.run(&all);
        assert_eq!(answer.code, 5, "{all:?}: {answer:?}");
        assert_eq!(std::fs::read_dir(place.path("empty")).unwrap().count(), 0, "{all:?}");
    }
}

#[test]
fn damage_is_exit_code_5_on_every_command() {
    let place = Place::with(&[&["q"]]);
    let lines: String = (0..3_000).map(|n| format!("{n}\n")).collect();
    place.write("tasks", lines);
    place.ok(&["put", "q", "--from", "tasks"]);
    let mut file =
        std::fs::OpenOptions::new().write(true).open(place.path("gristmill.db")).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    // The tables of tasks and of the claim order, not the root pages before them.
    for page in 45..pages {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0x5a; 512]).unwrap();
    }
    drop(file);
    for words in [&["check"][..], &["doctor"], &["list"], &["work", "--exec", "true", "--drain"]] {
        let answer = place.run(words);
        assert_eq!(answer.code, 5, "{words:?}: {answer:?}");
    }
}

/// How many bytes a process has written so far.
fn written(pid: &str) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let bytes = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    bytes.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or_default()
}

/// Kills backups at all times: what stands under their name is whole.
fn killed_backups(rounds: u64) {
    let place = Place::with(&[&["q"]]);
    let lines: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    place.write("tasks", lines);
    place.ok(&["put", "q", "--from", "tasks"]);
    let whole = std::fs::metadata(place.path("gristmill.db")).unwrap().len();
    for round in 0..rounds {
        let name = format!("copy{round}.db");
        let mut backup = place.command(&["backup", &name]).spawn().unwrap();
        let pid = backup.id().to_string();
        // At its first byte, at its last, and between.
        let far = 1 + round * whole / rounds.max(1);
        eventually("it got so far", || !is_alive(&pid) || written(&pid) >= far);
        if is_alive(&pid) {
            backup.kill().unwrap();
        }
        backup.wait().unwrap();
        if !place.path(&name).exists() {
            place.ok(&["backup", &name]);
        }
        let url = format!("sqlite://{name}");
        let stats = place.json(&["stats", "q", "--store", &url]);
        assert_eq!(stats[0]["ready"], 20_000, "{name}");
        std::fs::remove_file(place.path(&name)).unwrap();
    }
}

#[test]
fn a_killed_backup_leaves_nothing_under_its_name() {
    killed_backups(4);
}

#[test]
#[ignore = "long: many kills"]
fn long_killed_backups_leave_nothing_under_their_name() {
    killed_backups(100);
}

#[test]
fn a_store_is_not_copied_to_another_name_of_itself() {
    let place = Place::with(&[&["q"]]);
    std::fs::hard_link(place.path("gristmill.db"), place.path("other.db")).unwrap();
    let answer =
        place.run(&["copy", "--from", "sqlite://gristmill.db", "--to", "sqlite://other.db"]);
    assert_eq!(answer.code, 5, "{answer:?}");
    assert!(answer.stderr.contains("2 names"), "{}", answer.stderr);
    std::fs::remove_file(place.path("other.db")).unwrap();
    assert_eq!(place.stats("q")["paused"], false);
}

#[test]
fn stats_are_watched_with_rates() {
    let place = Place::with(&[&["emails"]]);
    let mut watch = place.start(&["stats", "--watch=100ms", "--json"]);
    Running::until(&mut watch.stdout, "\"rates\"");
    place.ok(&["put", "emails", "1"]);
    let lines = Running::until(&mut watch.stdout, "\"put\":1,");
    // One of them saw it come, and it is not said twice.
    let rates: Vec<f64> = lines
        .iter()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()[0]["rates"]["put"].as_f64().unwrap()
        })
        .collect();
    assert!(
        *rates.last().unwrap() > 0.0 && rates.iter().filter(|rate| **rate > 0.0).count() == 1,
        "{rates:?}"
    );
    let mut table = place.start(&["stats", "--watch=100ms"]);
    let shown = Running::until(&mut table.stdout, "emails").join(" ");
    assert!(shown.contains("put/s") && !shown.contains('\u{1b}'), "{shown}");
}
