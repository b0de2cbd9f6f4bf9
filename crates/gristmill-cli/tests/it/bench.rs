//! `bench`: every row is there, beside a bare limit, and nothing stays behind.
//! How fast anything is, is no test's business.

use gristmill_pgserver::Server;
use serde_json::Value;

use crate::place::Place;

const SMALL: [&str; 5] = ["bench", "--tasks", "1000", "--rounds", "1"];

fn measured(place: &Place, store: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = store.iter().chain(&SMALL).copied().collect();
    place.json(&words).as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["name"] == name);
    assert!(found.is_some(), "no row {name}");
    found.unwrap()
}

/// A rate beside a bare one.
fn assert_rate(rows: &[Value], name: &str) {
    let row = row(rows, name);
    for field in ["rate", "bare", "ratio"] {
        assert!(row[field].as_f64().is_some_and(|value| value > 0.0), "{field} of {row}");
    }
    assert_eq!(row["durable"], true, "{row}");
}

/// A time beside one bare commit.
fn assert_time(rows: &[Value], name: &str) {
    let row = row(rows, name);
    let micros = |field: &str| row[field].as_f64().unwrap();
    assert!(micros("p50_us") <= micros("p99_us"), "{row}");
    assert!(0.0 < micros("bare_p50_us"), "{row}");
    assert!(micros("bare_p50_us") <= micros("bare_p99_us"), "{row}");
}

/// Times of what another process put.
fn assert_across(rows: &[Value]) {
    for name in ["start_across", "start_across_put"] {
        let row = row(rows, name);
        let micros = |field: &str| row[field].as_f64().unwrap();
        assert!(micros("p50_us") <= micros("p99_us"), "{row}");
        assert_eq!(row["durable"], true, "{row}");
    }
    assert!(row(rows, "start_across_put")["p50_us"].as_f64() > Some(0.0), "nothing was put");
}

/// What limits and turns cost, and how soon who waits for a result has it.
const LIMITS: [&str; 5] = [
    "limited_concurrency",
    "limited_rate",
    "limited_concurrency_group",
    "limited_rate_group",
    "fair",
];

fn assert_flow(rows: &[Value]) {
    for name in LIMITS {
        assert_rate(rows, name);
    }
    for name in ["result_wait", "result_wait_other"] {
        let row = row(rows, name);
        assert!(row["p50_us"].as_f64().unwrap() <= row["p99_us"].as_f64().unwrap(), "{row}");
    }
}

fn assert_nothing_left(place: &Place) {
    assert_eq!(std::fs::read_dir(place.path(".")).unwrap().count(), 0);
}

#[test]
fn sqlite_is_measured_in_files_that_are_away_afterwards() {
    let place = Place::new();
    let rows = measured(&place, &[]);
    for name in ["bulk_put", "claim_settle", "worker_drain", "put_64", "put_256"] {
        assert_rate(&rows, name);
    }
    for name in ["http_put_64", "http_bulk", "http_claim_settle"] {
        assert_rate(&rows, name);
    }
    assert_time(&rows, "start_sqlite");
    assert_across(&rows);
    assert_flow(&rows);
    let memory = row(&rows, "memory_cycle");
    assert!(memory["durable"] == false && memory["ratio"].as_f64() > Some(0.0), "{memory}");
    assert_nothing_left(&place);
}

#[test]
fn a_measurement_is_picked_by_its_name() {
    let place = Place::new();
    let rows = measured(&place, &["--store", "memory:"]);
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["memory_cycle", "start_memory", "start_memory_outside"]);
    assert_eq!(names[3..8], LIMITS);
    assert_eq!(names[8..], ["result_wait"], "there is no other handle on what is in memory");
    let words: Vec<&str> = SMALL.iter().chain(&["--only", "put_64,bulk_put"]).copied().collect();
    let rows = place.json(&words);
    let names: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bulk_put", "put_64"]);
    assert_nothing_left(&place);
}

#[test]
fn a_spool_is_measured_in_folders_that_are_away_afterwards() {
    let place = Place::new();
    let rows = measured(&place, &["--store", "files://spool"]);
    for name in ["bulk_put", "claim_settle", "worker_drain"] {
        assert_rate(&rows, name);
    }
    assert_time(&rows, "start_files");
    assert_across(&rows);
    assert_flow(&rows);
    assert_nothing_left(&place);
}

#[test]
fn postgres_is_measured_with_what_it_costs_the_server() {
    let database = Server::shared().unwrap().database("bench", |_| Ok(())).unwrap();
    let place = Place::new();
    let rows = measured(&place, &["--store", &database.url()]);
    for name in [
        "bulk_put",
        "bulk_put_copy",
        "bulk_put_one_copy",
        "claim_settle",
        "worker_drain",
        "worker_drain_4",
        "worker_drain_4_each",
        "drain_errors",
        "drain_failing",
        "drain_follow_ups",
        "drain_keyed",
        "drain_waiting",
        "bulk_put_keyed",
        "put_1",
        "put_8",
        "put_64",
        "put_processes",
    ] {
        assert_rate(&rows, name);
    }
    for name in ["start_postgres", "start_postgres_other", "start_postgres_put"] {
        assert_time(&rows, name);
    }
    assert_across(&rows);
    assert_flow(&rows);
    assert!(row(&rows, "idle")["cost"].as_f64().is_some(), "what an idle worker costs");
    for name in ["wal_bulk_put", "wal_claim_settle", "wal_worker_drain"] {
        let cost = row(&rows, name);
        assert!(cost["cost"].as_f64() > Some(100.0), "less than was put or taken: {cost}");
        assert!(cost["bare"].as_f64() > Some(100.0), "less than was put or taken: {cost}");
    }
    for name in ["dead_claim_settle", "dead_worker_drain"] {
        let cost = row(&rows, name);
        assert!(cost["bare"].as_f64() >= Some(1.0), "a deletion a task: {cost}");
        assert!(cost["cost"].as_f64() > Some(0.0), "tasks that are done leave nothing: {cost}");
    }
}
