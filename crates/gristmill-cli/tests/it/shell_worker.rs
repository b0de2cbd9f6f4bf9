//! A shell script as a worker: claim, settle, extend, on each store.

use std::process::Command;

use serde_json::{Value, json};

use crate::place::Place;
use crate::postgres::migrated;

fn claimed(place: &Place, words: &[&str]) -> (Value, String) {
    let words: Vec<&str> = ["claim"].iter().chain(words).copied().collect();
    let claim = place.json(&words);
    let token = claim["token"].as_str().unwrap().to_owned();
    (claim, token)
}

#[test]
fn a_claimed_task_is_settled_in_each_way() {
    let place = Place::with(&[
        &["q", "max_attempts=9", "backoff.base=1h", "backoff.jitter=no"],
        &["other"],
    ]);
    for n in ["1", "2", "3", "4", "5", "6", "7"] {
        place.ok(&["put", "q", n, "--key", n]);
    }
    let (claim, token) = claimed(&place, &["other", "q", "--max", "6", "--worker", "me"]);
    assert_eq!((&claim["queue"], &claim["lease_ms"]), (&json!("q"), &json!(60_000)));
    let tasks = claim["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 6);
    assert_eq!((&tasks[1]["id"], &tasks[1]["payload"]), (&json!(2), &json!(2)));
    assert_eq!((&tasks[1]["key"], &tasks[1]["attempt"]), (&json!("2"), &json!(1)));
    assert_eq!(place.json(&["show", "1"])["lease"]["worker"], "me");
    let settle = |id: &str, words: &[&str]| {
        let words = [&["settle", id, "--token", &token][..], words].concat();
        place.json(&words)
    };
    assert_eq!(settle("1", &["--done"])["became"], "done");
    assert_eq!(settle("2", &["--error", "no route"])["became"], "pending");
    assert_eq!(settle("3", &["--fail", "no such user"])["became"], "failed");
    let again = settle("4", &["--retry", "10m", "--reason", "host is down"]);
    assert_eq!(again["became"], "pending");
    assert_eq!(settle("5", &["--release", "--after", "1h"])["became"], "pending");
    assert_eq!(settle("1", &["--done"])["answer"], "gone");
    assert_eq!(settle("3", &["--fail", "x"])["answer"], "already_recorded");
    let short = place.ok(&["fail", "6", "--token", &token, "--error", "never"]);
    assert_eq!(short.trim(), "task 6 failed");
    for (id, error, attempts) in [
        ("2", "no route", 1),
        ("3", "no such user", 1),
        ("4", "host is down", 1),
        ("6", "never", 1),
    ] {
        let task = place.json(&["show", id]);
        assert_eq!(
            (&task["history"][0]["error"], &task["attempts"]),
            (&json!(error), &json!(attempts))
        );
    }
    assert_eq!(place.json(&["show", "5"])["attempts"], 0, "given back, it does not count");
    let (_, token) = claimed(&place, &["q"]);
    assert_eq!(place.ok(&["done", "7", "--token", &token]).trim(), "task 7 done");
    let none = place.run(&["claim", "q", "other"]);
    assert_eq!((none.code, &*none.stdout), (3, ""));
    assert!(none.stderr.contains("nothing is due in q, other; the next in"), "{}", none.stderr);
}

#[test]
fn whoever_waits_gets_what_a_script_came_to() {
    let place = Place::with(&[&["sums"]]);
    let put = place.start(&["put", "sums", "[1,2]", "--wait", "30s"]);
    let (claim, token) = claimed(&place, &["sums", "--wait", "30s"]);
    let id = claim["tasks"][0]["id"].to_string();
    let done = place.run_with(&["done", &id, "--token", &token, "--result", "-"], b"{\"sum\": 3}");
    assert_eq!(done.code, 0, "{done:?}");
    let (code, out, err) = put.end();
    assert_eq!((code, out.trim()), (0, "{\"sum\": 3}"), "{err}");
}

#[test]
fn whoever_lost_the_lease_is_told() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let (_, first) = claimed(&place, &["q", "--lease", "1s"]);
    // It waits until the first lease is over.
    let (claim, second) = claimed(&place, &["q", "--wait", "30s"]);
    assert_eq!(claim["tasks"][0]["attempt"], 2);
    for words in [&["done", "1", "--token", &first][..], &["extend", "--token", &first]] {
        let lost = place.run(words);
        assert_eq!(lost.code, 3, "{lost:?}");
        assert!(lost.stderr.contains("lease") && lost.stderr.contains("lost"), "{lost:?}");
    }
    let extended = place.json(&["extend", "--token", &second, "--lease", "5m"]);
    assert_eq!(
        extended,
        json!({ "answer": "extended", "lease_ms": 300_000, "cancelled": [], "lost": [] })
    );
    place.ok(&["extend", "--token", &second, "--task", "1", "--progress", "40% of it"]);
    assert_eq!(place.json(&["show", "1"])["progress"]["message"], "of it");
    place.ok(&["cancel", "1"]);
    assert_eq!(place.json(&["extend", "--token", &second])["cancelled"], json!([1]));
    let ended = place.json(&["settle", "1", "--token", &second, "--cancelled"]);
    assert_eq!(ended["became"], "cancelled");
}

#[test]
fn what_nobody_could_be_told_of_is_given_back() {
    let place = Place::with(&[&["q"]]);
    place.run_with(&["put", "q", "-", "--encoding", "raw"], b"a\0b");
    let claim = place.run(&["claim", "q", "--shell"]);
    assert_eq!((claim.code, &*claim.stdout), (1, ""));
    assert!(claim.stderr.contains("--payload FILE"), "{}", claim.stderr);
    assert_eq!(place.run(&["claim", "q", "--payload", "nowhere/x"]).code, 1);
    assert_eq!(place.json(&["show", "1"])["attempts"], 0);
    place.ok(&["claim", "q", "--payload", "x"]);
    assert_eq!(std::fs::read(place.path("x")).unwrap(), b"a\0b");
}

/// The example of `claim --help`, as it stands.
const WORKER: &str = r#"
while next=$(gristmill claim urgent emails --shell); do
  eval "$next"
  if printf %s "$GRISTMILL_TASK_PAYLOAD" >> got && [ "$GRISTMILL_TASK_KEY" != bad ]; then gristmill done
  else gristmill settle --error "it ended with $?"; fi
  echo " $GRISTMILL_TASK_QUEUE ${GRISTMILL_TASK_KEY-none} $GRISTMILL_TASK_ATTEMPT" >> got
done
gristmill claim emails --shell > /dev/null; echo "ended with $?"
"#;

fn a_script_works(place: &Place, store: &str) {
    let put = |words: &[&str]| {
        place.ok(&[&["--store", store, "put", "--create"][..], words].concat());
    };
    place.ok(&["--store", store, "queue", "add", "urgent", "max_attempts=1"]);
    put(&["emails", "it's $(touch pwned) `x`\n\"q\" \\", "--key", "ada"]);
    put(&["emails", "plain"]);
    put(&["urgent", "first", "--key", "bad"]);
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_gristmill")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", WORKER])
        .current_dir(place.path(""))
        .env("PATH", path)
        .env("GRISTMILL_STORE", store)
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("ended with 3"), "{store}: {out} {err}");
    let got = std::fs::read_to_string(place.path("got")).unwrap();
    assert_eq!(
        got,
        "first urgent bad 1\nit's $(touch pwned) `x`\n\"q\" \\ emails ada 1\nplain emails none 1\n",
        "{store}: {err}"
    );
    std::fs::remove_file(place.path("got")).unwrap();
    assert!(!place.path("pwned").exists());
    let failed = place.json(&["--store", store, "failed"]);
    assert_eq!(failed[0]["error"], "it ended with 1", "{store}");
    assert_eq!(failed.as_array().unwrap().len(), 1);
}

#[test]
fn a_script_is_a_worker_on_each_store() {
    let place = Place::new();
    a_script_works(&place, "sqlite://a.db");
    a_script_works(&place, "files://spool");
    let database = migrated();
    a_script_works(&place, &database.url());
}
