//! Many tasks from lines.

use std::fmt::Write;

use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, Running, eventually};

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
    // Lists are shown in parts, and are one all the same.
    let listed = place.json(&["list", "--limit", "2500"]);
    let ids: Vec<_> =
        listed.as_array().unwrap().iter().map(|t| t["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, (1..=2500).collect::<Vec<_>>());
    let table = place.ok(&["list", "--limit", "2500"]);
    assert!(table.ends_with("(2500 tasks shown, there are more: see --limit)\n"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("user-")).count(), 2500);
    assert_eq!(
        place.json(&["list", "--state", "ready", "--limit", "1001"]).as_array().unwrap().len(),
        1001
    );
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

#[test]
fn a_plain_line_is_a_payload_as_it_stands() {
    let place = Place::with(&[&["q"]]);
    let lines = b" a b.jpg\r\n\n42\nn\xf6.jpg\nlast";
    for words in [&["put", "q", "--lines"][..], &["put", "q", "--from", "-", "--encoding", "raw"]] {
        let answer = place.run_with(words, lines);
        assert_eq!((answer.code, answer.stdout.trim()), (0, "4 enqueued"), "{}", answer.stderr);
        let tasks = place.json(&["list"]);
        let payloads: Vec<_> =
            tasks.as_array().unwrap().iter().map(|task| task["payload"].clone()).collect();
        assert_eq!(
            payloads,
            [
                json!({ "text": " a b.jpg" }),
                json!({ "text": "42" }),
                json!({ "base64": "bvYuanBn" }),
                json!({ "text": "last" }),
            ]
        );
        place.ok(&["cancel", "--all"]);
    }
    place.write("names", "a\nb\n");
    let said = place.ok(&["put", "q", "--lines", "--from", "names", "--source", "s"]);
    assert_eq!(said.trim(), "2 enqueued");
}

#[test]
fn what_a_quiet_stream_said_is_put_and_told_at_the_end() {
    let place = Place::with(&[&["q"]]);
    for end in [Some(Signal::INT), None] {
        let mut command = place.command(&["put", "q", "--lines"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let running = Running::from(child);
        pipe.write_all(b"one\ntwo\nhal").unwrap();
        eventually("the lines stand", || place.stats("q")["ready"] == 2);
        if let Some(signal) = end {
            running.signal(signal);
            let (code, out, err) = running.end();
            assert_eq!((code, &*out), (130, ""), "{err}");
            assert!(err.contains("lines 1 to 2 were put (2 enqueued"), "{err}");
            place.ok(&["cancel", "--all"]);
        } else {
            drop(pipe);
            let (code, out, err) = running.end();
            assert_eq!((code, out.trim()), (0, "3 enqueued"), "{err}");
        }
    }
}

#[test]
fn an_empty_payload_has_to_be_meant() {
    let place = Place::with(&[&["q"]]);
    assert_eq!(place.run(&["put", "q", "-"]).code, 3);
    assert_eq!(place.ok(&["put", "q", "-", "--allow-empty"]).trim(), "enqueued 1");
    assert_eq!(place.json(&["show", "1"])["payload"], json!({ "text": "" }));
}

#[test]
fn a_time_is_that_of_the_zone() {
    let place = Place::with(&[&["q"]]);
    let put = |at: &str| {
        let output = place.command(&["put", "q", "1", "--at", at]).env("TZ", "Asia/Tokyo").output();
        String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
    };
    assert_eq!(put("2040-01-01 09:00"), "enqueued 1, due 2040-01-01 09:00 JST");
    assert_eq!(put("2040-01-01T00:00:00Z"), "enqueued 2, due 2040-01-01 09:00 JST");
    assert_eq!(put("2020-01-01 09:00"), "enqueued 3, due now: that time is past");
    for id in ["1", "2"] {
        assert_eq!(place.json(&["show", id])["run_at"], "2040-01-01T00:00:00Z");
    }
    assert!(put("tomorrow 9:00").contains("09:00 JST"));
}
