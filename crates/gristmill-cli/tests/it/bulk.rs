//! Many tasks from lines.

use std::fmt::Write;

use serde_json::json;

use crate::place::Place;

#[test]
fn a_hundred_thousand_lines_are_put() {
    let place = Place::with(&[&["q"]]);
    let mut lines = String::new();
    for number in 0..100_000 {
        writeln!(lines, "{{\"to\":\"user-{number}@example.org\",\"n\":{number}}}").unwrap();
    }
    place.write("tasks.ndjson", &lines);
    let start = std::time::Instant::now();
    let said = place.ok(&["put", "q", "--from", "tasks.ndjson"]);
    println!("100,000 lines in {:?}", start.elapsed());
    assert_eq!(said.trim(), "100000 enqueued");
    let stats = place.stats("q");
    assert_eq!((&stats["ready"], &stats["total"]), (&json!(100_000), &json!(100_000)));
    let last = place.json(&["show", "100000"]);
    assert_eq!(last["payload"]["n"], 99_999);
}

#[test]
fn each_line_gets_its_answer_in_order() {
    let place = Place::with(&[&["q"]]);
    let lines = r#"{"payload":{"a":1},"key":"one","priority":5}
{"payload":2,"key":"one"}

{"payload":3,"delay":"1h","id":"third","headers":{"trace":"x"}}
{"payload":3,"delay":"1h","id":"third"}
"#;
    let answer =
        place.run_with(&["put", "q", "--from", "-", "--envelope", "--json"], lines.as_bytes());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"outcome":"enqueued","id":1,"reason":null}"#,
            r#"{"outcome":"duplicate","id":1,"reason":null}"#,
            r#"{"outcome":"enqueued","id":2,"reason":null}"#,
            r#"{"outcome":"duplicate","id":2,"reason":null}"#,
        ]
    );
    let task = place.json(&["show", "1"]);
    assert_eq!((&task["payload"], &task["priority"]), (&json!({ "a": 1 }), &json!(5)));
    assert_eq!(place.json(&["show", "2"])["headers"], json!({ "trace": "x" }));
    let stats = place.stats("q");
    assert_eq!((&stats["ready"], &stats["delayed"]), (&json!(1), &json!(1)));
}

#[test]
fn a_full_queue_refuses_the_rest() {
    let place = Place::with(&[&["q", "capacity=2"]]);
    let answer = place.run_with(&["put", "q", "--from", "-"], b"1\n2\n3\n4\n");
    assert_eq!(answer.code, 3);
    assert_eq!(answer.stdout.trim(), "2 enqueued, 2 refused");
    assert!(
        answer.stderr.contains("2 tasks refused; the first: the queue is full"),
        "{}",
        answer.stderr
    );
}

#[test]
fn the_queue_can_be_declared_on_the_way() {
    let place = Place::new();
    let answer =
        place.run_with(&["put", "q", "--from", "-", "--create", "--source", "s"], b"1\n2\n");
    assert_eq!((answer.code, answer.stdout.trim()), (0, "2 enqueued"), "{}", answer.stderr);
    assert_eq!(place.json(&["list"])[1]["source"], "s");
}
