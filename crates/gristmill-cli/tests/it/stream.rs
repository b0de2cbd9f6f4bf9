//! Programs that stay: what their answers make of tasks, what their death costs, and
//! that they end with their worker.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, eventually, is_alive};

/// A program in shell that does what each payload says, and tells of its starts.
const OBEYS: &str = r#"
echo $$ >> started
echo '{"gristmill":1,"ready":true}'
while IFS= read -r line; do
    id=${line#*\"id\":\"}; id=${id%%\"*}
    what=${line#*\"payload\":\"}; what=${what%%\"*}
    echo "words about $what" >&2
    case $what in
        done|error|fail|release) echo "{\"id\":\"$id\",\"outcome\":\"$what\"}";;
        value) echo "{\"id\":\"$id\",\"outcome\":\"done\",\"result\":{\"n\": $id}}";;
        told) echo "{\"id\":\"$id\",\"outcome\":\"error\",\"error\":\"in its own words\"}";;
        retry) echo "{\"id\":$id,\"outcome\":\"retry\",\"after\":\"1h\",\"error\":\"busy\"}";;
        odd) echo "{\"id\":\"$id\",\"outcome\":\"ok\"}";;
        die) kill -9 $$;;
        leave) exit 3;;
        chatter) echo "now I do it";;
        other) echo "{\"id\":\"x$id\",\"outcome\":\"done\"}";;
        hang) sleep 300 & echo $! > inner; wait;;
        far) echo "{\"id\":\"$id\",\"progress\":{\"done\":1,\"total\":3}}"
             echo "{\"id\":\"$id\",\"progress\":\"2/3 of them\"}"
             echo "{\"id\":\"$id\",\"progress\":[7]}"
             while [ ! -e go ]; do sleep 0.05; done
             echo "{\"id\":\"$id\",\"outcome\":\"done\"}";;
        slow) sleep 5.5; echo "{\"id\":\"$id\",\"outcome\":\"done\"}";;
        *) echo "{\"id\":\"$id\",\"outcome\":\"done\"}";;
    esac
done
echo bye >> ended
"#;

/// A place with the program and a queue `q` with these settings.
fn place(settings: &[&str]) -> Place {
    let words: Vec<&str> = ["q"].iter().chain(settings).copied().collect();
    let place = Place::with(&[&words]);
    place.write("obeys", OBEYS);
    place
}

/// Works through what is due, and gives back what was said and the exit code.
fn drain(place: &Place) -> (String, i32) {
    let answer = place.run(&["work", "q", "--exec", "exec sh obeys", "--stream", "--drain"]);
    (answer.stderr, answer.code)
}

fn put(place: &Place, payloads: &[&str]) {
    for payload in payloads {
        place.ok(&["put", "q", &format!("\"{payload}\""), "--key", payload]);
    }
}

fn task(place: &Place, key: &str) -> Value {
    place.json(&["list", "--key", key])[0].clone()
}

fn lines(place: &Place, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.path(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn how_far_it_is_is_shown() {
    let place = place(&[]);
    put(&place, &["far"]);
    let working = place.start(&["work", "q", "--exec", "exec sh obeys", "--stream", "--drain"]);
    eventually("it is told", || task(&place, "far")["progress"]["done"] == 2);
    assert_eq!(task(&place, "far")["progress"]["message"], "of them");
    place.write("go", "");
    assert_eq!(working.end().0, 0);
    assert_eq!(place.stats("q")["total"], 0);
}

#[test]
fn one_program_answers_for_each_task() {
    let place = place(&["max_attempts=1", "backoff.base=1h", "backoff.jitter=false"]);
    put(&place, &["done", "error", "fail", "release", "told", "odd", "again"]);
    place.ok(&["put", "q", "\"retry\"", "--key", "retry", "--max-attempts", "2"]);
    let (said, code) = drain(&place);
    assert_eq!(code, 3, "tasks failed: {said}");
    assert_eq!(lines(&place, "started").len(), 1);
    assert_eq!(lines(&place, "ended"), ["bye"], "its input ended, and it went by itself");
    let list = place.json(&["list"]);
    assert_eq!(list.as_array().unwrap().len(), 6, "two are done: {list}");
    let failed = |key: &str, error: &str| {
        let task = task(&place, key);
        assert_eq!(task["state"], "failed", "{task}");
        assert_eq!(task["error"], error);
    };
    // What it said to standard error since the task's line, and nothing of the others.
    failed("error", "words about error");
    failed("fail", "words about fail");
    failed("told", "in its own words");
    let odd = task(&place, "odd");
    assert!(odd["error"].as_str().unwrap().contains("'ok' is not one of"), "{odd}");
    for (key, attempts) in [("release", 0), ("retry", 1)] {
        let task = task(&place, key);
        assert_eq!((&task["state"], &task["attempts"]), (&json!("pending"), &json!(attempts)));
    }
    assert_eq!(task(&place, "retry")["error"], "busy");
    assert_eq!(place.stats("q")["delayed"], 2, "both come back in an hour");
}

#[test]
fn what_is_answered_with_done_is_the_result() {
    let place = place(&["keep_result=1h"]);
    put(&place, &["value", "done"]);
    let (said, code) = drain(&place);
    assert_eq!(code, 0, "{said}");
    let result = |id: &str| place.json(&["show", id])["result"].clone();
    assert_eq!((result("1"), result("2")), (json!({ "n": 1 }), json!(null)));
}

#[test]
fn a_crash_costs_the_task_that_ran_and_no_other() {
    let place = place(&["max_attempts=1"]);
    put(&place, &["a", "die", "b", "leave", "c"]);
    let (said, code) = drain(&place);
    assert_eq!(code, 3, "tasks failed: {said}");
    assert_eq!(lines(&place, "started").len(), 3);
    let failed = place.json(&["failed"]);
    assert_eq!(failed.as_array().unwrap().len(), 2, "{failed}");
    let why = |key: &str| task(&place, key)["error"].as_str().unwrap().to_owned();
    assert!(why("die").contains("killed by signal 9: words about die"), "{}", why("die"));
    assert!(why("leave").contains("exit status 3: words about leave"), "{}", why("leave"));
}

#[test]
fn a_line_that_is_no_answer_ends_the_program_and_is_the_tasks_error() {
    let place = place(&["max_attempts=1"]);
    put(&place, &["a", "chatter", "b", "other", "c"]);
    let (said, code) = drain(&place);
    assert_eq!(code, 3, "tasks failed: {said}");
    assert_eq!(lines(&place, "started").len(), 3);
    assert_eq!(place.stats("q")["failed"], 2);
    let why = |key: &str| task(&place, key)["error"].as_str().unwrap().to_owned();
    assert!(why("chatter").contains("'now I do it'"), "{}", why("chatter"));
    assert!(why("other").contains("about task x4, and it was given task 4"), "{}", why("other"));
    for pid in lines(&place, "started") {
        assert!(!is_alive(&pid), "{pid} is still there");
    }
}

#[test]
fn the_timeout_ends_the_program_and_all_it_started() {
    let place = place(&["max_attempts=1", "timeout=2s"]);
    put(&place, &["a", "hang", "b"]);
    let (said, code) = drain(&place);
    assert_eq!(code, 3, "tasks failed: {said}");
    let failed = place.json(&["failed"]);
    assert_eq!(failed.as_array().unwrap().len(), 1, "{failed}");
    assert_eq!(failed[0]["history"][0]["outcome"], "timed_out");
    assert_eq!(place.stats("q")["total"], 1, "the others are done");
    let started = lines(&place, "started");
    assert_eq!(started.len(), 2, "it was started again");
    for pid in started.iter().chain(&lines(&place, "inner")) {
        assert!(!is_alive(pid), "{pid} is still there");
    }
}

#[test]
fn a_cancelled_task_ends_its_program() {
    let place = place(&["lease=1s"]);
    put(&place, &["hang", "b"]);
    let words = ["work", "q", "--exec", "exec sh obeys", "--stream"];
    let work = place.start(&words);
    eventually("it hangs", || !lines(&place, "inner").is_empty());
    place.ok(&["cancel", "1"]);
    eventually("the other one is done", || place.stats("q")["total"] == 0);
    assert!(!is_alive(&lines(&place, "inner")[0]));
    work.signal(Signal::TERM);
    assert_eq!(work.end().0, 0);
}

#[test]
fn a_program_that_is_never_ready_burns_no_task() {
    for (program, starts, part) in [
        ("echo x >> starts; echo no model >&2; exit 1", 3, "exit status 1: no model"),
        ("echo x >> starts; echo Loading; sleep 60", 3, "'Loading'"),
        ("echo x >> starts; exec ./not-there", 1, "exit status 127"),
    ] {
        let place = Place::with(&[&["q", "max_attempts=1"]]);
        place.ok(&["put", "q", "1"]);
        place.ok(&["put", "q", "2"]);
        let answer = place.run(&["work", "q", "--exec", program, "--stream", "--drain"]);
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains("its command cannot be run"), "{}", answer.stderr);
        assert!(answer.stderr.contains(part), "{}", answer.stderr);
        assert_eq!(lines(&place, "starts").len(), starts, "{program}");
        let tasks = place.json(&["list"]);
        for task in tasks.as_array().unwrap() {
            assert_eq!((&task["state"], &task["attempts"]), (&json!("pending"), &json!(0)));
        }
        assert_eq!(tasks.as_array().unwrap().len(), 2);
    }
}

#[test]
fn one_that_is_ready_and_reads_nothing_is_an_error() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.ok(&["put", "q", "1"]);
    let program = "exec <&-; echo '{\"gristmill\":1,\"ready\":true}'; exec sleep 60";
    place.ok(&["work", "q", "--exec", program, "--stream", "--drain"]);
    let failed = place.json(&["failed"]);
    assert!(failed[0]["error"].as_str().unwrap().contains("does not read"), "{failed}");
}

#[test]
fn a_silent_program_is_asked_whether_it_flushes() {
    let place = place(&[]);
    put(&place, &["slow"]);
    let (said, code) = drain(&place);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("has not answered and wrote nothing for 5s: does it flush"), "{said}");
    assert_eq!(place.stats("q")["total"], 0);
}

/// Keeps each line as it is.
const KEEPS: &str = r#"echo '{"gristmill":1,"ready":true}'; while IFS= read -r line; do
    printf '%s\n' "$line" >> lines; id=${line#*\"id\":\"}; id=${id%%\"*}
    echo "{\"id\":\"$id\",\"outcome\":\"done\"}"; done"#;

#[test]
fn a_task_is_one_line_whatever_its_payload() {
    let place = Place::with(&[&["q", "timeout=1m"]]);
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    let bytes = vec![0xff; 1_000_000];
    place.run_with(&["put", "q", "-", "--key", "k", "--group", "g"], b"{\"a\":\n [1,\r\n2]}");
    assert_eq!(place.run_with(&["put", "q", "-"], large.as_bytes()).code, 0);
    assert_eq!(place.run_with(&["put", "q", "-", "--encoding", "raw"], &bytes).code, 0);
    place.ok(&["work", "q", "--exec", KEEPS, "--stream", "--drain"]);
    let told: Vec<Value> =
        lines(&place, "lines").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [first, second, third] = told.as_slice() else { panic!("{} lines", told.len()) };
    assert_eq!((&first["id"], &first["attempt"]), (&json!("1"), &json!(1)));
    assert_eq!((&first["key"], &first["group"]), (&json!("k"), &json!("g")));
    assert_eq!((&first["queue"], &first["headers"]), (&json!("q"), &json!({})));
    assert_eq!(first["payload"], json!({ "a": [1, 2] }));
    let timeout = first["timeout_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&timeout), "{timeout}");
    assert_eq!(
        (second["payload"].as_str().unwrap().len(), &second["key"]),
        (1_000_000, &json!(null))
    );
    assert_eq!(third.get("payload"), None);
    assert!(third["payload_base64"].as_str().unwrap().starts_with("//////"));
}

#[test]
fn programs_end_with_their_worker_and_not_before() {
    let place = place(&["slots=2"]);
    let words = ["work", "q", "--exec", "exec sh obeys", "--stream", "--processors", "2"];
    let work = place.start(&words);
    for round in 0..3 {
        put(&place, &[&format!("a{round}"), &format!("b{round}")]);
        eventually("both are done", || place.stats("q")["total"] == 0);
    }
    let started = lines(&place, "started");
    assert!((1..=2).contains(&started.len()), "{started:?}");
    assert!(started.iter().all(|pid| is_alive(pid)));
    work.signal(Signal::TERM);
    assert_eq!(work.end().0, 0);
    assert_eq!(lines(&place, "ended").len(), started.len());
    // A worker that is killed takes its programs along.
    let work = place.start(&words);
    put(&place, &["last"]);
    eventually("it is done", || place.stats("q")["total"] == 0);
    work.kill();
    let last = lines(&place, "started").pop().unwrap();
    eventually("its end", || !is_alive(&last));
}

#[test]
fn a_reload_changes_the_program_and_ends_the_old_one() {
    let place = Place::new();
    place.write("obeys", OBEYS);
    let config = |queue: &str| {
        place.write(
            "gristmill.yaml",
            format!("queues:\n  - {queue}\n  - {{name: other, exec: cat}}\n"),
        );
    };
    config("{name: q, exec: exec sh obeys, mode: stream}");
    let mut up = place.start(&["up"]);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    put(&place, &["a"]);
    eventually("it is done", || place.stats("q")["total"] == 0);
    config("{name: q, exec: exec sh obeys 2, mode: stream}");
    up.signal(Signal::HUP);
    Running::until(&mut up.stderr, "gristmill.yaml was taken");
    put(&place, &["b"]);
    eventually("it is done", || place.stats("q")["total"] == 0);
    let started = lines(&place, "started");
    assert_eq!(started.len(), 2);
    eventually("the old one's end", || !is_alive(&started[0]));
    assert!(is_alive(&started[1]));
    config("{name: q}");
    up.signal(Signal::HUP);
    Running::until(&mut up.stderr, "gristmill.yaml was taken");
    eventually("the end of one whose queue is not handled here any more", || {
        !is_alive(&started[1])
    });
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
}

/// The blocks of the page about handlers in this language.
pub(crate) fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/handlers.md");
    let text = std::fs::read_to_string(page).unwrap();
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once(&format!("```{language}\n")) {
        let (block, next) = after.split_once("```").unwrap();
        blocks.push(block.to_owned());
        rest = next;
    }
    blocks
}

/// The programs that the page about handlers shows do what it says of them.
fn shown(language: &str, command: &str) {
    let block = blocks(language).swap_remove(0);
    assert!(block.lines().count() <= 20, "{block}");
    let place = Place::with(&[&["emails", "max_attempts=1"]]);
    place.write("handler", &block);
    place.ok(&["put", "emails", "{\"to\":\"ada@example.org\"}"]);
    place.ok(&["put", "emails", "{}"]);
    place.ok(&["put", "emails", "{\"to\":\"bob@example.org\"}"]);
    let report = place.json(&["work", "emails", "--exec", command, "--stream", "--drain"]);
    assert_eq!((&report["done"], &report["not_done"]), (&json!(2), &json!(1)));
    let failed = place.json(&["failed"]);
    assert_eq!(
        (&failed[0]["id"], failed[0]["history"][0]["outcome"].as_str()),
        (&json!(2), Some("fail"))
    );
    assert!(failed[0]["error"].as_str().unwrap().contains("to"), "{failed}");
}

#[test]
fn the_shell_program_of_the_docs_works() {
    shown("sh", "exec sh handler");
}

#[test]
fn the_python_program_of_the_docs_works() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    shown("python", "exec python3 handler");
}

/// One process a task and a program that stays, side by side: tasks a second of each.
fn rates(each: usize, stays: usize) -> (f64, f64) {
    let place = Place::with(&[&["each"], &["stays"]]);
    place.write("each.py", "import json, sys\njson.load(sys.stdin)\n");
    let answers = "import json, sys\nprint('{\"gristmill\":1,\"ready\":true}', flush=True)\n\
                   for line in sys.stdin:\n    task = json.loads(line)\n    \
                   print(json.dumps({\"id\": task[\"id\"], \"outcome\": \"done\"}), flush=True)\n";
    place.write("stays.py", answers);
    let rate = |queue: &str, tasks: usize, more: &[&str]| {
        let payloads: String = (0..tasks).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        assert_eq!(place.run_with(&["put", queue, "--from", "-"], payloads.as_bytes()).code, 0);
        let command = format!("exec python3 {queue}.py");
        let words = ["work", queue, "--drain", "--exec", &command];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let start = Instant::now();
        assert_eq!(place.json(&words)["done"], json!(tasks));
        tasks as f64 / start.elapsed().as_secs_f64()
    };
    (rate("each", each, &[]), rate("stays", stays, &["--stream"]))
}

#[test]
#[ignore = "long: measures"]
fn long_a_program_that_stays_is_fifty_times_as_fast() {
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let (each, stays) = rates(100, 20_000);
            println!(
                "one process a task {each:.1}/s, one that stays {stays:.0}/s: {:.0}",
                stays / each
            );
            stays / each
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[2] >= 50.0, "{ratios:?}");
}

#[test]
fn a_program_that_stays_is_faster() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let (each, stays) = rates(20, 2_000);
    assert!(stays > 5.0 * each, "one process a task {each:.1}/s, one that stays {stays:.0}/s");
}
