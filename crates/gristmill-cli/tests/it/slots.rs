//! Counts and slots in handlers that are programs, with two workers at once.

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Running, eventually};

/// Says its count and slot, and ends when a file of its name is there.
const HANDLER: &str = "name=$(cat); echo $GRISTMILL_TASK_CONCURRENT ${GRISTMILL_TASK_SLOT-none} \
                       > said-$name; while [ ! -e go-$name ]; do sleep 0.02; done";

fn said(place: &Place, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(place.path(&format!("said-{name}"))).ok()?;
    text.ends_with('\n').then(|| text.trim().to_owned())
}

/// Two processes with two processors each.
fn two_workers(place: &Place) -> [Running; 2] {
    let start = || {
        let mut work = place.start(&["work", "q", "--exec", HANDLER, "--processors", "2"]);
        Running::until(&mut work.stderr, "working on q");
        work
    };
    [start(), start()]
}

fn stop(place: &Place, workers: [Running; 2], names: &[&str]) {
    for name in names {
        place.write(&format!("go-{name}"), "");
    }
    eventually("all are done", || place.stats("q")["total"] == 0);
    for work in workers {
        work.signal(Signal::TERM);
        assert_eq!(work.end().0, 0);
    }
}

#[test]
fn slots_are_unique_over_processes_and_limit_what_runs() {
    let place = Place::with(&[&["q", "slots=2"]]);
    let workers = two_workers(&place);
    for name in ["a", "b", "c"] {
        place.ok(&["put", "q", name, "--encoding", "raw"]);
    }
    eventually("two run", || said(&place, "a").is_some() && said(&place, "b").is_some());
    let slot =
        |name: &str| said(&place, name).map(|said| said.split(' ').nth(1).unwrap().to_owned());
    let mut slots = [slot("a").unwrap(), slot("b").unwrap()];
    slots.sort();
    assert_eq!(slots, ["0", "1"]);
    let list = place.json(&["list", "q", "--state", "processing"]);
    let shown: Vec<&Value> = list.as_array().unwrap().iter().map(|t| &t["lease"]["slot"]).collect();
    assert!(shown.contains(&&0.into()) && shown.contains(&&1.into()), "{shown:?}");
    // Two processors are free, and both slots are taken.
    assert_eq!(place.stats("q")["ready"], 1);
    assert_eq!(said(&place, "c"), None);
    place.write("go-b", "");
    eventually("the third runs", || said(&place, "c").is_some());
    assert_eq!(slot("c"), slot("b"));
    stop(&place, workers, &["a", "c"]);
}

#[test]
fn counts_are_those_of_all_processes() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["queue", "set", "q", "count=true"]);
    let workers = two_workers(&place);
    for (name, expected) in [("a", "0 none"), ("b", "1 none"), ("c", "2 none")] {
        place.ok(&["put", "q", name, "--encoding", "raw"]);
        eventually("it runs", || said(&place, name).is_some());
        assert_eq!(said(&place, name).as_deref(), Some(expected), "{name}");
    }
    stop(&place, workers, &["a", "b", "c"]);
}

#[test]
fn a_handler_gets_the_trace_it_belongs_to() {
    let place = Place::with(&[&["q"]]);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let line = format!(
        "{{\"payload\":1,\"headers\":{{\"traceparent\":\"{trace}\",\"tracestate\":\"v=1\"}}}}\n\
         {{\"payload\":2}}\n"
    );
    place.write("tasks", line);
    place.ok(&["put", "q", "--from", "tasks", "--envelope"]);
    let mut work = place.command(&["work", "q", "--drain", "--exec"]);
    work.arg("echo \"$(cat) ${TRACEPARENT-none} ${TRACESTATE-none}\"");
    // One of ours must not be taken for the task's.
    let output = work.env("TRACEPARENT", "00-inherited").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(&format!("1 {trace} v=1\n")), "{said}");
    assert!(said.contains("2 none none\n"), "{said}");
}
