//! `up`: what the configuration describes, running.

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, Running};

const CONFIG: &str = "
queues:
  - name: emails
    settings: {max_attempts: 2, backoff: {base: 10ms}}
    exec: 'read x; case $x in *bad*) echo no such host >&2; exit 1;; esac; echo sent'
    processors: 2
  - name: waiting
seed:
  - {queue: emails, id: one, payload: {to: ada}}
  - {queue: emails, id: two, payload: {to: grace}}
  - {queue: emails, id: three, payload: {to: bad}}
  - {queue: waiting, id: four, payload: 1}
";

#[test]
fn two_runs_seed_once_and_stop_cleanly() {
    let place = Place::new();
    place.write("gristmill.yaml", CONFIG);
    let mut up = place.start(&["up"]);
    let said = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
    assert!(said.contains("store      sqlite://gristmill.db"), "{said}");
    assert!(said.contains("seeded     4 tasks (0 put before)"), "{said}");
    assert!(said.contains("emails (2 processors), waiting (no handler here)"), "{said}");
    Running::until(&mut up.stderr, "failed: no such host");
    // The others may have ended before it: look at the store, not at lines.
    crate::place::eventually("all are handled", || {
        let stats = place.stats("emails");
        stats["total"] == 1 && stats["failed"] == 1
    });
    up.signal(Signal::INT);
    let (code, stdout, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.matches("sent").count(), 2, "{stdout}");
    assert!(stderr.contains("stopped; 2 tasks done this time"), "{stderr}");

    let mut up = place.start(&["up"]);
    let said = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
    assert!(said.contains("seeded     0 tasks (4 put before)"), "{said}");
    // A second shell puts; the first one does it.
    place.ok(&["put", "emails", "{\"to\":\"edsger\"}"]);
    Running::until(&mut up.stdout, "sent");
    place.ok(&["retry", "--all"]);
    Running::until(&mut up.stderr, "failed: no such host");
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
    assert_eq!(place.stats("waiting")["ready"], 1);
}

#[test]
fn changed_settings_are_said_and_changes_by_hand_stand() {
    let place = Place::new();
    place.write("gristmill.yaml", CONFIG);
    place.up_and_stop();
    place.write("gristmill.yaml", CONFIG.replace("max_attempts: 2", "max_attempts: 7"));
    assert!(place.up_and_stop().contains("queue emails: max_attempts: 2 -> 7"));
    place.ok(&["queue", "set", "emails", "max_attempts=9", "--by", "ada"]);
    let said = place.up_and_stop();
    assert!(said.contains("settings changed by ada stand over the configuration"), "{said}");
    assert_eq!(place.json(&["queue", "list"])[0]["settings"]["max_attempts"], "9");
}

#[test]
fn the_sample_is_fine() {
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gristmill.yaml");
    let place = Place::new();
    let report = place.json(&["config", "check", "--config", sample.to_str().unwrap()]);
    assert_eq!((&report["queues"], &report["seed"]), (&json!(2), &json!(10)));
    assert_eq!(report["schedules"], 1);
    assert!(!place.path("gristmill.db").exists());
}

#[test]
fn memory_is_enough_to_try() {
    let place = Place::new();
    place.write("gristmill.yaml", CONFIG);
    let mut up = place.start(&["up", "--store", "memory:"]);
    Running::until(&mut up.stdout, "sent");
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
}
