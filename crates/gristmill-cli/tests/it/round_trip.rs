//! Put, look, and act on tasks by hand, as programs see it.

use serde_json::json;

use crate::place::Place;

#[test]
fn puts_are_answered_in_the_fixed_form() {
    let place = Place::with(&[&["emails"], &["news", "on_duplicate=replace"]]);
    let put = |words: &[&str]| {
        let words: Vec<&str> = ["put"].iter().chain(words).copied().chain(["--json"]).collect();
        place.ok(&words).trim().to_owned()
    };
    assert_eq!(
        put(&["emails", "1", "--key", "k"]),
        r#"{"outcome":"enqueued","id":1,"reason":null}"#
    );
    assert_eq!(
        put(&["emails", "2", "--key", "k"]),
        r#"{"outcome":"duplicate","id":1,"reason":null}"#
    );
    assert_eq!(put(&["news", "1", "--key", "k"]), r#"{"outcome":"enqueued","id":2,"reason":null}"#);
    assert_eq!(put(&["news", "2", "--key", "k"]), r#"{"outcome":"replaced","id":2,"reason":null}"#);
    assert_eq!(put(&["fresh", "1", "--create"]), r#"{"outcome":"enqueued","id":3,"reason":null}"#);
    assert_eq!(place.ok(&["put", "emails", "3"]).trim(), "enqueued 4");
    assert_eq!(place.stats("news")["total"], 1);
}

#[test]
fn a_put_may_say_what_holds_instead_of_the_queues_settings() {
    let place = Place::with(&[&["emails", "max_attempts=9"]]);
    let own = ["--timeout", "30s", "--max-attempts", "2", "--backoff", "base=1s,cap=5s,jitter=no"];
    place.ok(&[&["put", "emails", "1"][..], &own[..]].concat());
    place.ok(&["put", "emails", "2", "--max-attempts", "unlimited"]);
    place.ok(&["put", "emails", "3"]);
    let task = place.json(&["show", "1"]);
    assert_eq!((&task["timeout"], &task["max_attempts"]), (&json!("30s"), &json!(2)));
    assert_eq!(task["backoff"], json!({ "base": "1s", "cap": "5s", "jitter": false }));
    assert_eq!(place.json(&["show", "2"])["max_attempts"], "unlimited");
    assert_eq!(place.json(&["show", "3"]).get("max_attempts"), None, "only what is its own");
    let shown = place.ok(&["show", "1"]);
    let line = "own       backoff base=1s cap=5s jitter=false, max_attempts 2, timeout 30s";
    assert!(shown.lines().any(|known| known == line), "{shown}");
    for (option, value, part) in [
        ("--timeout", "0s", "timeout is zero"),
        ("--timeout", "5", "the unit is missing"),
        ("--max-attempts", "0", "max_attempts is 0"),
        ("--max-attempts", "-1", "max_attempts: '-1'"),
        ("--backoff", "2s", "base=1s,cap=1m"),
        ("--backoff", "base=500d", "backoff.base is over a year"),
    ] {
        let failed = place.run(&["put", "emails", "1", option, value]);
        assert_eq!(failed.code, 2, "{option} {value}: {failed:?}");
        assert!(failed.stderr.contains(part), "{option} {value}: {failed:?}");
    }
    assert_eq!(place.stats("emails")["total"], 3);
}

#[test]
fn a_put_says_everything_about_its_task() {
    let place = Place::with(&[&["emails"]]);
    place.ok(&[
        "put",
        "emails",
        r#"{"n": 1.50}"#,
        "--key",
        "k",
        "--priority",
        "-3",
        "--group",
        "g",
        "--source",
        "s",
        "--at",
        "2040-01-01T00:00:00+01:00",
    ]);
    let task = place.json(&["show", "1"]);
    assert_eq!(task["payload"], json!({ "n": 1.5 }));
    assert_eq!(task["run_at"], "2039-12-31T23:00:00Z");
    for (field, value) in [
        ("queue", json!("emails")),
        ("state", json!("pending")),
        ("key", json!("k")),
        ("priority", json!(-3)),
        ("group", json!("g")),
        ("source", json!("s")),
        ("attempts", json!(0)),
        ("encoding", json!("json")),
        ("history", json!([])),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    assert_eq!(place.stats("emails")["delayed"], 1);
    assert_eq!(place.json(&["list", "--state", "delayed"])[0]["id"], 1);
    assert_eq!(place.json(&["list", "--state", "ready"]), json!([]));
    assert!(place.ok(&["show", "1"]).contains("payload   {\"n\": 1.50}"));
}

#[test]
fn payloads_that_are_not_json_survive() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "plain words"]);
    let bytes = place.run_with(&["put", "q", "-", "--encoding", "raw"], &[0xff, 0x00]);
    assert_eq!(bytes.code, 0);
    place.ok(&["put", "q", "-5"]);
    let payloads: Vec<_> =
        place.json(&["list"]).as_array().unwrap().iter().map(|t| t["payload"].clone()).collect();
    assert_eq!(
        payloads,
        [json!({ "text": "plain words" }), json!({ "base64": "/wA=" }), json!(-5)]
    );
}

#[test]
fn stats_have_the_fixed_fields() {
    let place = Place::with(&[&["emails"]]);
    place.ok(&["put", "emails", "1"]);
    let line = place.ok(&["stats", "--json"]);
    let order = ["queue", "ready", "delayed", "processing", "failed", "total", "wait_ms", "paused"];
    let places: Vec<usize> =
        order.iter().map(|name| line.find(&format!("\"{name}\":")).expect(name)).collect();
    assert!(places.is_sorted(), "{line}");
    let table = place.ok(&["stats"]);
    assert!(table.contains("queue") && table.contains("emails") && !table.contains('\u{1b}'));
}

#[test]
fn failed_tasks_are_retried_resolved_and_discarded() {
    let place = Place::with(&[&["emails", "max_attempts=1"], &["other", "max_attempts=1"]]);
    for key in ["a", "b", "c", "d"] {
        place.ok(&["put", "emails", "1", "--key", key]);
    }
    place.ok(&["put", "other", "1"]);
    place.ok(&["work", "--exec", "echo no such host >&2; exit 1", "--drain"]);
    let failed = place.json(&["failed"]);
    assert_eq!(failed.as_array().unwrap().len(), 5);
    let times = failed.as_array().unwrap().iter().map(|task| task["failed_at"].as_str().unwrap());
    assert!(times.rev().is_sorted(), "what failed last comes first: {failed}");
    assert_eq!(place.json(&["failed", "emails", "--key", "a"])[0]["error"], "no such host");
    assert_eq!(place.json(&["failed", "--limit", "2"]).as_array().unwrap().len(), 2);

    let report = place.json(&["retry", "1", "--note", "host is back", "--by", "ada"]);
    assert_eq!((&report["action"], &report["moved"]), (&json!("retry"), &json!(1)));
    let task = place.json(&["show", "1"]);
    assert_eq!(task["state"], "pending");
    assert_eq!(task["note"], json!({ "text": "host is back", "by": "ada" }));

    assert_eq!(place.json(&["resolve", "2"])["moved"], 1);
    assert_eq!(place.json(&["discard", "--queue", "emails", "--key", "c"])["moved"], 1);
    assert_eq!(place.json(&["retry", "--queue", "emails"])["moved"], 1);
    assert_eq!(place.stats("emails")["ready"], 2);
    assert_eq!(place.json(&["discard", "--all"])["moved"], 1);
    assert_eq!(place.stats("other")["total"], 0);
    assert_eq!(place.json(&["retry", "--all"])["moved"], 0);

    // Of several ids, those that can be moved are; the exit code tells.
    let some = place.run(&["cancel", "1", "77", "--json"]);
    assert_eq!(some.code, 3);
    let report: serde_json::Value = serde_json::from_str(&some.stdout).unwrap();
    assert_eq!(report["counts"], json!({ "moved": 1, "gone": 1 }));
    assert_eq!(report["not_moved"][0]["id"], 77);
    assert_eq!(place.json(&["cancel", "--all"])["moved"], 1);
    assert_eq!(place.stats("emails")["total"], 0);
}

#[test]
fn a_paused_queue_takes_puts_and_gives_nothing() {
    let place = Place::with(&[&["emails"]]);
    assert_eq!(place.json(&["pause", "emails"]), json!([{ "queue": "emails", "paused": true }]));
    place.ok(&["put", "emails", "1"]);
    place.ok(&["work", "emails", "--exec", "true", "--drain"]);
    let stats = place.stats("emails");
    assert_eq!((&stats["ready"], &stats["paused"]), (&json!(1), &json!(true)));
    place.ok(&["resume", "emails"]);
    place.ok(&["work", "emails", "--exec", "true", "--drain"]);
    assert_eq!(place.stats("emails")["total"], 0);
}

#[test]
fn settings_by_hand_win_until_reset() {
    let place = Place::with(&[&["emails", "max_attempts=3"]]);
    let setting = |name: &str| place.json(&["queue", "list"])[0]["settings"][name].clone();
    assert_eq!(setting("max_attempts"), "3");
    place.ok(&["queue", "set", "emails", "max_attempts=9", "timeout=1m30s", "--by", "ada"]);
    assert_eq!((setting("max_attempts"), setting("timeout")), (json!("9"), json!("1m30s")));
    assert_eq!(place.json(&["queue", "list"])[0]["changed_by"], "ada");
    // Declared anew, the change still stands.
    place.ok(&["queue", "add", "emails", "max_attempts=4"]);
    assert_eq!(setting("max_attempts"), "9");
    assert!(place.ok(&["queue", "reset", "emails"]).contains("max_attempts: 9 -> 4"));
    assert_eq!(setting("max_attempts"), "4");
}

#[test]
fn a_backup_is_a_store_and_the_check_finds_nothing() {
    let place = Place::with(&[&["emails"]]);
    place.ok(&["put", "emails", "1"]);
    assert_eq!(place.json(&["check"]), json!({ "sound": true, "findings": [] }));
    assert!(place.json(&["backup", "copy.db"])["bytes"].as_u64().unwrap() > 0);
    let copy = place.json(&["stats", "--store", "sqlite://copy.db"]);
    assert_eq!(copy[0]["ready"], 1);
}

#[test]
fn the_environment_names_the_store_and_a_flag_wins() {
    let place = Place::with(&[&["emails"]]);
    place.ok(&["queue", "add", "others", "--store", "sqlite://other.db"]);
    let queue = |args: &[&str]| {
        let out = place.command(args).env("GRISTMILL_STORE", "sqlite://other.db").output().unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        stats[0]["queue"].as_str().unwrap().to_owned()
    };
    assert_eq!(queue(&["stats", "--json"]), "others");
    assert_eq!(queue(&["--json", "--store", "sqlite://gristmill.db", "stats"]), "emails");
}

#[test]
fn completions_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.ok(&["completions", shell]);
        assert!(script.contains("resolve") && script.contains("gristmill"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    place.ok(&["man", "--out", "pages/man1"]);
    let page = |name: &str| std::fs::read_to_string(place.path(&format!("pages/man1/{name}.1")));
    for (name, part) in [
        ("gristmill", "Exit codes"),
        ("gristmill-put", "tomorrow 9:00"),
        ("gristmill-queue-add", "max_attempts=3"),
        ("gristmill-schedules-add", "Europe/Athens"),
    ] {
        assert!(page(name).unwrap().contains(part), "{name}");
    }
    assert_eq!(place.ok(&["man"]), page("gristmill").unwrap());
    assert!(page("gristmill-help").is_err() && page("gristmill-queue-help").is_err());
    assert!(!page("gristmill-queue").unwrap().contains("help(1)"));
    let again = Place::new();
    again.ok(&["man", "--out", "man1"]);
    let same = std::fs::read_to_string(again.path("man1/gristmill-put.1")).unwrap();
    assert_eq!(same, page("gristmill-put").unwrap(), "pages do not tell when they were made");
}
