//! What failed: by time, by error, and what is done to failures of one cause.

use serde_json::{Value, json};

use crate::place::Place;
use crate::postgres::migrated;

/// Tasks that failed with these errors, in this order, one claim each.
fn failed(place: &Place, queue: &str, errors: &[&str]) {
    for error in errors {
        let claim = place.json(&["claim", queue]);
        let (id, token) = (claim["tasks"][0]["id"].to_string(), claim["token"].as_str().unwrap());
        place.ok(&["fail", &id, "--token", token, "--error", error]);
    }
}

fn ids(tasks: &Value) -> Vec<i64> {
    tasks.as_array().unwrap().iter().map(|task| task["id"].as_i64().unwrap()).collect()
}

#[test]
fn what_failed_last_comes_first() {
    let place = Place::with(&[&["q"]]);
    for priority in ["3", "2", "1"] {
        place.ok(&["put", "q", "1", "--priority", priority]);
    }
    // The last put is the first to run.
    failed(&place, "q", &["a", "b", "c"]);
    assert_eq!(ids(&place.json(&["failed"])), [1, 2, 3]);
    assert_eq!(ids(&place.json(&["failed", "--limit", "2"])), [1, 2]);
    assert!(place.ok(&["failed", "--limit", "2"]).contains("(2 tasks shown, there are more"));
    assert_eq!(ids(&place.json(&["failed", "--error", "b"])), [2]);
    assert_eq!(ids(&place.json(&["failed", "--since", "1h"])), [1, 2, 3]);
    assert_eq!(ids(&place.json(&["failed", "--since", "0s"])), [0i64; 0]);
}

/// The words with this store.
fn with<'a>(store: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["--store", store][..], words].concat()
}

fn groups_and_acts(place: &Place, store: &str) {
    let ok = |words: &[&str]| place.ok(&with(store, words));
    let json = |words: &[&str]| place.json(&with(store, words));
    ok(&["queue", "add", "mails"]);
    ok(&["queue", "add", "reports"]);
    let fail = |queue: &str, errors: &[&str]| {
        for error in errors {
            ok(&["put", queue, "1"]);
            let claim = json(&["claim", queue]);
            let (id, token) =
                (claim["tasks"][0]["id"].to_string(), claim["token"].as_str().unwrap());
            ok(&["fail", &id, "--token", token, "--error", error]);
        }
    };
    fail("mails", &["no user 'ada' (12)", "no user 'bob' (7)", "timed out after 30s"]);
    fail("reports", &["no user 'eve' (9000)", "Traceback:\n  File \"x\", line 3\nKeyError: 'to'"]);
    let groups = json(&["failed", "--by-error"]);
    let said: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|g| (g["error"].as_str().unwrap(), g["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(said[0], ("no user '…' (#)", 3), "{store}");
    assert_eq!(said.len(), 3);
    assert!(said.contains(&("KeyError: '…'", 1)) && said.contains(&("timed out after #s", 1)));
    let first = &groups[0];
    assert_eq!(first["queues"], json!(["mails", "reports"]));
    assert!(first["first"].as_str().unwrap() < first["last"].as_str().unwrap());
    let example = json(&["show", &first["example"].to_string()]);
    assert_eq!(example["error"], "no user 'eve' (9000)", "the one that failed last");
    let table = ok(&["failed", "--by-error", "--limit", "1"]);
    assert!(table.contains("no user '…' (#)") && table.contains("(1 of 3 errors shown"), "{table}");
    assert_eq!(json(&["failed", "mails", "--by-error"])[0]["count"], 2);

    // A shape, as it was shown, and a limit; then a part of the error as it stands.
    let moved = |words: &[&str]| json(words)["moved"].as_u64().unwrap();
    assert_eq!(moved(&["retry", "--error", "no user '…' (#)", "--limit", "1"]), 1);
    assert_eq!(
        moved(&["retry", "--error", "no user '…' (#)", "--since", "1h", "--queue", "mails"]),
        1
    );
    assert_eq!(moved(&["discard", "--error", "timed out", "--since", "0s"]), 0);
    assert_eq!(moved(&["discard", "--error", "timed out"]), 1);
    assert_eq!(moved(&["resolve", "--error", "line 3"]), 1, "not only in its last line");
    assert_eq!(moved(&["retry", "--all", "--limit", "5"]), 1);
    assert_eq!(moved(&["cancel", "--all", "--limit", "2"]), 2);
    let stats = json(&["stats"]);
    assert_eq!((&stats[0]["total"], &stats[1]["total"]), (&json!(0), &json!(1)), "{store}");
    assert_eq!(ok(&["failed", "--by-error"]).trim(), "nothing failed");
}

#[test]
fn failures_of_one_cause_are_one_and_are_dealt_with_together() {
    let place = Place::new();
    groups_and_acts(&place, "sqlite://a.db");
    groups_and_acts(&place, "files://spool");
    groups_and_acts(&place, &migrated().url());
}

#[test]
fn a_limit_counts_what_was_moved() {
    let place = Place::with(&[&["q", "unique=pending"]]);
    for key in ["a", "a", "b"] {
        place.ok(&["put", "q", "1", "--key", key]);
        failed(&place, "q", &["no host 5"]);
    }
    place.ok(&["put", "q", "1", "--key", "a"]);
    let report = place.json(&["retry", "--error", "no host #", "--limit", "1"]);
    assert_eq!(report["counts"], json!({ "duplicate": 2, "moved": 1 }));
    assert_eq!(place.json(&["show", "3"])["state"], "pending");
}
