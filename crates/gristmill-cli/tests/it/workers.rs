//! `workers`, and the manager that `up` runs.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, eventually};

const CONFIG: &str = "
queues:
  - name: emails
    settings: {processors: {min: 2}}
    exec: 'cat; echo'
    processors: 3
  - {name: reports, exec: 'cat; echo'}
manager: {every: 100ms}
";

#[test]
fn a_manager_moves_the_processors_that_all_queues_share() {
    let place = Place::new();
    place.write("gristmill.yaml", CONFIG);
    let mut up = place.start(&["up"]);
    let said = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
    assert!(said.contains("emails, reports; a manager moves 4 processors"), "{said}");
    let workers = || place.json(&["workers"]);
    eventually("the worker follows", || {
        let processors = &workers()[0]["processors"];
        let of_emails =
            processors.as_array().into_iter().flatten().filter(|p| p["queue"] == "emails");
        workers()[0]["follows_term"].as_u64() >= Some(1) && of_emails.count() == 2
    });
    let worker = workers()[0].clone();
    // Where the machine is slow, the manager may have had to be elected again.
    let term = &worker["follows_term"];
    assert_eq!(worker["processors"].as_array().unwrap().len(), 4, "{worker}");
    assert_eq!(worker["assigned"], json!([{ "queue": "emails", "processors": 2 }]));
    assert_eq!((&worker["manager_term"], &worker["stopping"]), (term, &json!(false)));
    assert_eq!(worker["queues"], json!(["emails", "reports"]));
    let table = place.ok(&["workers"]);
    for part in ["worker", "serving", "2 emails, 2 rotating", "the manager of term "] {
        assert!(table.contains(part), "{table}");
    }
    assert!(table.contains("2 processors for emails"), "{table}");
    place.ok(&["put", "reports", "hello"]);
    Running::until(&mut up.stdout, "hello");
    let id = worker["worker"].as_str().unwrap();
    let asked = place.json(&["workers", "move", id, "reports"]);
    assert_eq!(asked, json!({ "worker": id, "asked": "workers.move" }));
    let of_reports = |processors: &Value| {
        processors.as_array().into_iter().flatten().filter(|p| p["queue"] == "reports").count()
    };
    eventually("one serves reports", || of_reports(&workers()[0]["processors"]) == 1);
    assert!(place.ok(&["workers", "quiet", &id[..8]]).contains("was asked to be quiet"));
    eventually("it is quiet", || workers()[0]["processors"].as_array().unwrap().is_empty());
    assert_eq!(workers()[0]["quiet"], json!(true));
    place.ok(&["workers", "resume", id]);
    eventually("it goes on", || workers()[0]["processors"].as_array().unwrap().len() == 4);
    assert_eq!(place.run(&["workers", "stop", "none"]).code, 3);
    assert_eq!(place.run(&["workers", "move", id, "none"]).code, 3);
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
    assert_eq!(workers(), json!([]));
    assert!(place.ok(&["workers"]).contains("no workers lately"));
}

#[test]
fn up_runs_schedules_for_workers_elsewhere() {
    let place = Place::new();
    let config = "
queues: [{name: beats}]
schedules: [{name: tick, queue: beats, every: 1s, payload: {say: tick}}]
";
    place.write("gristmill.yaml", config);
    let mut up = place.start(&["up"]);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    eventually("two fires", || place.stats("beats")["ready"].as_u64() >= Some(2));
    up.signal(Signal::TERM);
    let (code, _, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");

    place.write("gristmill.yaml", "queues: [{name: beats}]\n");
    let answer = place.run(&["up", "--json"]);
    let error: Value = serde_json::from_str(&answer.stderr).unwrap();
    assert_eq!((answer.code, &error["error"]["code"]), (2, &json!("config")), "{answer:?}");
}
