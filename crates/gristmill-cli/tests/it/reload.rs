//! A configuration that changes while `up` runs: taken whole, or not at all.

use rustix::process::Signal;

use crate::place::{Place, Running, eventually};

const BEFORE: &str = "
queues:
  - {name: emails, exec: 'cat > /dev/null; echo before >> handled', settings: {max_attempts: 2}}
";

/// Brings the configuration up.
fn up(place: &Place) -> Running {
    let mut up = place.start(&["up"]);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    up
}

/// Replaces the file in one step, as editors do.
fn replace(place: &Place, text: &str) {
    place.write("new.yaml", text);
    std::fs::rename(place.path("new.yaml"), place.path("gristmill.yaml")).unwrap();
}

fn handled(place: &Place) -> String {
    std::fs::read_to_string(place.path("handled")).unwrap_or_default()
}

#[test]
fn a_changed_file_is_taken_and_what_changed_is_said() {
    let place = Place::new();
    place.write("gristmill.yaml", BEFORE);
    let mut up = up(&place);
    place.ok(&["put", "emails", "1"]);
    eventually("the old command ran", || handled(&place) == "before\n");
    let after = "
queues:
  - {name: emails, exec: 'echo after >> handled', settings: {max_attempts: 7}, processors: 3}
  - {name: reports, exec: 'echo report >> handled'}
schedules:
  - {name: nightly, queue: reports, cron: 0 3 * * *, payload: 1}
seed:
  - {queue: reports, id: first, payload: 1}
keep: {audit: 30d, minutes: 2d}
";
    replace(&place, after);
    let said = Running::until(&mut up.stderr, "gristmill.yaml was taken").join("\n");
    for part in [
        "queue emails: max_attempts: 2 -> 7",
        "queue emails: its handler changed",
        "emails: processors: 1 -> 3",
        "queue reports: declared",
        "schedule nightly: declared",
        "reports handled by 1 processor",
        "1 task seeded",
        "minutes of queues are kept for 2d from now on",
        "keep.audit: a change of it is taken at the next start",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    eventually("the new handler ran", || handled(&place).contains("report"));
    place.ok(&["put", "emails", "2"]);
    eventually("the new command ran", || handled(&place).contains("after"));
    // A handler that is taken out: its tasks wait, the queue stays.
    replace(
        &place,
        "queues:\n  - {name: emails, exec: 'echo last >> handled'}\n  - name: reports\n",
    );
    let said = Running::until(&mut up.stderr, "gristmill.yaml was taken").join("\n");
    assert!(said.contains("reports not handled here any more"), "{said}");
    assert!(said.contains("schedule nightly is not in this file and stays"), "{said}");
    place.ok(&["put", "reports", "2"]);
    place.ok(&["put", "emails", "3"]);
    eventually("the last command ran", || handled(&place).contains("last"));
    assert_eq!(place.stats("reports")["ready"], 1);
    up.signal(Signal::TERM);
    let (code, _, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_bad_file_changes_nothing_and_is_told_with_its_place() {
    let place = Place::new();
    place.write("gristmill.yaml", BEFORE);
    let mut up = up(&place);
    let bad = "queues:\n  - {name: emails, exec: 'echo new >> handled', settings: {max_attempts: 9}}\n  - {nmae: x}\n";
    replace(&place, bad);
    let said = Running::until(&mut up.stderr, "gristmill.yaml:3:6").join("\n");
    assert!(said.contains("was not taken, and all goes on as before"), "{said}");
    place.ok(&["put", "emails", "1"]);
    eventually("the old command ran", || handled(&place) == "before\n");
    assert_eq!(place.json(&["queue", "list"])[0]["settings"]["max_attempts"], "2");
    // What only a start can change is said, without its value.
    let other = "store: postgres://me:s3cret@db/shop\nlisten: 127.0.0.1:1\ndashboard: read-only\n";
    replace(&place, &format!("{other}{BEFORE}"));
    let said = Running::until(&mut up.stderr, "dashboard: a change of it").join("\n");
    assert!(said.contains("listen: a change of it"), "{said}");
    assert!(said.contains("store: a change of it is taken at the next start"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    // Nobody meant a stop.
    up.signal(Signal::HUP);
    Running::until(&mut up.stderr, "gristmill.yaml was read again: nothing changed");
    std::fs::remove_file(place.path("gristmill.yaml")).unwrap();
    Running::until(&mut up.stderr, "there is no gristmill.yaml");
    place.ok(&["--store", "sqlite://gristmill.db", "put", "emails", "2"]);
    eventually("it still works", || handled(&place) == "before\nbefore\n");
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
}

#[test]
fn a_command_that_cannot_be_run_is_corrected_in_the_file() {
    let place = Place::new();
    let text = "queues:\n  - {name: a, exec: ./none}\n  - {name: b, exec: 'echo b >> handled'}\n";
    place.write("gristmill.yaml", text);
    let mut up = up(&place);
    place.ok(&["put", "a", "1"]);
    Running::until(&mut up.stderr, "queue a: its command cannot be run");
    // Its worker is gone; the other one works on.
    place.ok(&["put", "b", "1"]);
    eventually("the other one works", || handled(&place) == "b\n");
    replace(&place, &text.replace("./none", "'echo a >> handled'"));
    Running::until(&mut up.stderr, "gristmill.yaml was taken");
    eventually("the corrected one works", || handled(&place) == "b\na\n");
    up.signal(Signal::TERM);
    let (code, _, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn serve_follows_its_file_too() {
    let place = Place::with(&[&["emails"]]);
    let mut command = place.command(&["serve"]);
    let mut serve = Running::of(command.env("GRISTMILL_LISTEN", "127.0.0.1:0"));
    Running::until(&mut serve.stdout, "Stop with Ctrl-C");
    // There was none at the start.
    replace(&place, BEFORE);
    let said = Running::until(&mut serve.stderr, "gristmill.yaml was taken").join("\n");
    assert!(said.contains("queue emails: max_attempts: 5 -> 2"), "{said}");
    place.ok(&["put", "emails", "1"]);
    serve.signal(Signal::TERM);
    assert_eq!(serve.end().0, 0);
    assert_eq!(handled(&place), "", "serve runs no handler");
}
