//! Everything on a file spool: `--store files://spool`.

use serde_json::{Value, json};

use crate::place::{Place, Running, eventually};

const STORE: [&str; 2] = ["--store", "files://spool"];

fn words<'a>(args: &[&'a str]) -> Vec<&'a str> {
    STORE.iter().chain(args).copied().collect()
}

fn ok(place: &Place, args: &[&str]) -> String {
    place.ok(&words(args))
}

fn json(place: &Place, args: &[&str]) -> Value {
    place.json(&words(args))
}

fn with(queues: &[&[&str]]) -> Place {
    let place = Place::new();
    for queue in queues {
        let args: Vec<&str> = ["queue", "add"].iter().chain(queue.iter()).copied().collect();
        ok(&place, &args);
    }
    place
}

#[test]
fn a_spool_takes_every_step_of_a_task() {
    let place = with(&[&["emails", "max_attempts=1"]]);
    for key in ["a", "b", "c"] {
        ok(&place, &["put", "emails", "{\"n\":1}", "--key", key]);
    }
    let twice = json(&place, &["put", "emails", "1", "--key", "a"]);
    assert_eq!(twice, json!({ "outcome": "duplicate", "id": 1, "reason": null }));
    assert_eq!(json(&place, &["stats", "emails"])[0]["ready"], 3);
    let handler = "test $GRISTMILL_TASK_KEY = c || { echo no such host >&2; exit 1; }";
    ok(&place, &["work", "--exec", handler, "--drain"]);
    assert_eq!(json(&place, &["failed"]).as_array().unwrap().len(), 2);
    assert_eq!(json(&place, &["failed", "--key", "a"])[0]["error"], "no such host");
    assert_eq!(json(&place, &["retry", "1", "--note", "again", "--by", "ada"])["moved"], 1);
    assert_eq!(json(&place, &["discard", "2"])["moved"], 1);
    assert_eq!(json(&place, &["show", "1"])["payload"], json!({ "n": 1 }));
    ok(&place, &["work", "emails", "--exec", "cat", "--drain"]);
    assert_eq!(json(&place, &["stats", "emails"])[0]["total"], 0);
    assert_eq!(json(&place, &["check"]), json!({ "sound": true, "findings": [] }));
}

#[test]
fn tasks_can_be_listed_and_read_without_the_binary() {
    let place = with(&[&["emails"]]);
    ok(&place, &["put", "emails", "{\"to\":\"ada\"}", "--key", "ada"]);
    let file = place.path("spool/pending/00/000000000001-emails");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("queue: emails\nkey: ada\n"), "{text}");
    assert!(text.ends_with("\n\n{\"to\":\"ada\"}"), "{text}");
}

#[test]
fn what_was_set_aside_is_counted_and_shown() {
    let place = with(&[&["emails"]]);
    ok(&place, &["put", "emails", "1"]);
    ok(&place, &["put", "emails", "2"]);
    place.write("spool/pending/00/000000000001-emails", "torn");
    place.write("spool/pending/letter.txt", "foreign");
    let stats = place.run(&words(&["stats"]));
    assert_eq!(stats.code, 0);
    assert!(stats.stderr.contains("2 files in corrupt/"), "{}", stats.stderr);
    assert_eq!(json(&place, &["stats", "emails"])[0]["ready"], 1);
    let check = place.run(&words(&["check", "--json"]));
    assert_eq!(check.code, 5, "{check:?}");
    assert!(check.stdout.contains("letter.txt"), "{}", check.stdout);
}

#[test]
fn a_killed_worker_loses_nothing() {
    let place = with(&[&["q", "lease=500ms"]]);
    for number in 0..3 {
        ok(&place, &["put", "q", &number.to_string()]);
    }
    let mut worker = place.start(&words(&["work", "q", "--exec", "echo begun; exec sleep 2"]));
    Running::until(&mut worker.stdout, "begun");
    worker.kill();
    let stats = json(&place, &["stats", "q"]);
    assert_eq!(stats[0]["total"], 3);
    let ended = || {
        ok(&place, &["work", "q", "--exec", "cat", "--drain"]);
        json(&place, &["stats", "q"])[0]["total"] == 0
    };
    eventually("the end of every task", ended);
    assert_eq!(json(&place, &["check"])["sound"], true);
}

#[test]
fn what_is_no_spool_is_said_plainly() {
    let place = Place::new();
    std::fs::create_dir(place.path("photos")).unwrap();
    place.write("photos/cat.jpg", "meow");
    let none = place.run(&words(&["stats"]));
    assert!(none.code != 0 && none.stderr.contains("there is no store at spool"), "{none:?}");
    let foreign = place.run(&["--store", "files://photos", "queue", "add", "q"]);
    assert!(foreign.code != 0 && foreign.stderr.contains("cat.jpg"), "{foreign:?}");
    assert_eq!(std::fs::read_dir(place.path("photos")).unwrap().count(), 1);
    let not_a_url = place.run(&["--store", "files://", "stats"]);
    assert!(not_a_url.stderr.contains("files://spool"), "{not_a_url:?}");
}

#[test]
fn tasks_move_between_sqlite_and_files() {
    let place = with(&[&["emails"]]);
    ok(&place, &["put", "emails", "1", "--key", "k"]);
    place.ok(&["copy", "--from", "files://spool", "--to", "sqlite://other.db"]);
    assert_eq!(place.json(&["stats", "--store", "sqlite://other.db"])[0]["ready"], 1);
    place.ok(&["copy", "--from", "sqlite://other.db", "--to", "files://third"]);
    let copied = place.json(&["list", "--store", "files://third"]);
    assert_eq!((&copied[0]["key"], &copied[0]["payload"]), (&json!("k"), &json!(1)));
}
