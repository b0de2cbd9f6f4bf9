//! `copy` as a shell sees it, killed midway and repeated.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::Place;

const FROM: &str = "sqlite://gristmill.db";
const TO: &str = "sqlite://target.db";

fn copy(place: &Place) -> Value {
    place.json(&["copy", "--from", FROM, "--to", TO])
}

fn in_target(place: &Place) -> Value {
    place.json(&["stats", "--store", TO])[0].clone()
}

#[test]
fn standing_tasks_come_along_and_the_source_rests() {
    let place = Place::with(&[&["emails", "max_attempts=1"]]);
    for key in ["a", "b"] {
        place.ok(&["put", "emails", "1", "--key", key]);
    }
    place.ok(&["work", "--exec", "echo no such host >&2; exit 1", "--drain"]);
    place.ok(&["put", "emails", "2", "--key", "a", "--delay", "1h"]);
    let report = copy(&place);
    assert_eq!((&report["imported"], &report["left"]), (&json!(3), &json!(0)));
    assert_eq!(report["queues"][0]["queue"], "emails");
    let stats = in_target(&place);
    assert_eq!((&stats["failed"], &stats["delayed"]), (&json!(2), &json!(1)));
    assert_eq!(stats["paused"], false);
    assert_eq!(place.stats("emails")["paused"], true);
    let failed = place.json(&["failed", "--store", TO]);
    assert_eq!(failed[0]["error"], "no such host");
    assert_eq!(failed[0]["history"][0]["outcome"], "error");
    assert_eq!(place.json(&["queue", "list", "--store", TO])[0]["settings"]["max_attempts"], "1");

    let said = place.ok(&["copy", "--from", FROM, "--to", TO]);
    assert!(said.contains("emails: 0 tasks copied, 3 copied before"), "{said}");
    assert!(said.contains("is paused and keeps its tasks"), "{said}");
}

#[test]
fn a_copy_that_was_killed_is_repeated_without_loss_or_duplicates() {
    let place = Place::with(&[&["emails"]]);
    let lines: String = (0..30_000).map(|n| format!("{n}\n")).collect();
    place.write("tasks", lines);
    place.ok(&["put", "emails", "--from", "tasks"]);
    for round in 0.. {
        let before = if round == 0 { 0 } else { in_target(&place)["ready"].as_u64().unwrap() };
        let mut copying = place.command(&["copy", "--from", FROM, "--to", TO]).spawn().unwrap();
        while copying.try_wait().unwrap().is_none() {
            let stats = place.run(&["stats", "--store", TO, "--json"]);
            let ready = serde_json::from_str::<Value>(&stats.stdout)
                .ok()
                .and_then(|stats| stats[0]["ready"].as_u64())
                .unwrap_or(0);
            if ready > before {
                let pid = rustix::process::Pid::from_child(&copying);
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                break;
            }
        }
        if copying.wait().unwrap().success() || round == 2 {
            break;
        }
    }
    let report = copy(&place);
    let sum = report["imported"].as_u64().unwrap() + report["already"].as_u64().unwrap();
    assert_eq!((sum, &report["left"]), (30_000, &json!(0)));
    let stats = in_target(&place);
    assert_eq!((&stats["ready"], &stats["paused"]), (&json!(30_000), &json!(false)));
    assert_eq!(place.json(&["check", "--store", TO])["sound"], true);
}

#[test]
fn what_cannot_be_copied_is_one_sentence() {
    let place = Place::with(&[&["emails"]]);
    for (words, part) in [
        (&["copy", "--from", FROM, "--to", FROM][..], "the same store"),
        (&["copy", "--from", FROM, "--to", "sqlite://./gristmill.db"], "the same store"),
        (&["copy", "--from", "sqlite://none.db", "--to", TO], "no store at none.db"),
        (&["copy", "--from", FROM, "--to", TO, "--wait", "5"], "unit is missing"),
        (&["copy", "--from", FROM], "--to"),
    ] {
        let answer = place.run(words);
        assert_ne!(answer.code, 0, "{words:?}");
        assert!(answer.stderr.contains(part), "{words:?}: {}", answer.stderr);
        assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
    }
    assert_eq!(place.stats("emails")["paused"], false);
}
