//! `doctor` on a SQLite store: what it finds, and how it ends.

use serde_json::json;

use crate::place::Place;

#[test]
fn a_sound_store_has_nothing_to_say() {
    let place = Place::with(&[&["emails"]]);
    place.ok(&["put", "emails", "1"]);
    assert_eq!(place.json(&["doctor"]), json!({ "sound": true, "findings": [] }));
    assert!(place.ok(&["doctor"]).contains("is sound"));
}

#[test]
fn what_waits_for_a_person_is_a_note_and_what_stands_still_is_grave() {
    let place = Place::with(&[&["emails"], &["small", "capacity=1"]]);
    place.ok(&["put", "emails", "1"]);
    place.ok(&["pause", "emails", "--by", "ada"]);
    let answer = place.json(&["doctor"]);
    assert_eq!(
        (&answer["sound"], &answer["findings"][0]["code"]),
        (&json!(true), &json!("paused"))
    );
    let found = answer["findings"][0]["found"].as_str().unwrap();
    assert_eq!(found, "queue 'emails' was paused by ada, and 1 task waits");

    place.ok(&["put", "small", "1"]);
    let full = place.run(&["doctor", "--json"]);
    assert_eq!(full.code, 5, "{}", full.stdout);
    let answer: serde_json::Value = serde_json::from_str(&full.stdout).unwrap();
    assert_eq!(answer["sound"], false);
    let codes: Vec<_> = answer["findings"].as_array().unwrap().iter().map(|f| &f["code"]).collect();
    assert_eq!(codes, ["full", "paused"], "grave ones first");
    let words = place.run(&["doctor"]);
    assert!(
        words.stdout.starts_with("grave: queue 'small' is full, with 1 task pending"),
        "{}",
        words.stdout
    );
    assert!(words.stdout.contains("\n       add workers"), "{}", words.stdout);
}

#[test]
fn failures_are_counted_and_cron_can_hear_of_notes() {
    let place = Place::with(&[&["emails", "max_attempts=1"]]);
    place.ok(&["put", "emails", "1"]);
    assert_eq!(place.run(&["doctor", "--strict"]).code, 0);
    place.run(&["work", "emails", "--exec", "exit 1", "--drain"]);
    let answer = place.json(&["doctor"]);
    assert_eq!(answer["findings"][0]["code"], "failed");
    assert_eq!(answer["findings"][0]["found"], "1 task of queue 'emails' failed for good");
    let strict = place.run(&["doctor", "--strict"]);
    assert_eq!(strict.code, 5, "{strict:?}");
    assert!(strict.stderr.contains("1 thing found"), "{strict:?}");
}
