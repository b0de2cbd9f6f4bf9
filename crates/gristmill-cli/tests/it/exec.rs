//! Handlers that are programs: what they get, how their end settles a task,
//! and that none of them outlives its time.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::place::{Place, Running, eventually, is_alive};

#[test]
fn the_exit_code_settles_the_task() {
    let place = Place::with(&[&["q", "max_attempts=1", "backoff.base=1h", "backoff.jitter=false"]]);
    for payload in ["0", "65", "75", "1", "signal"] {
        place.ok(&["put", "q", payload, "--key", payload]);
    }
    let handler = "read x; echo oops-$x >&2; case $x in signal) kill -9 $$;; *) exit $x;; esac";
    // The payload has no newline: `read` answers 1 and sets x all the same.
    let report = place.json(&["work", "q", "--exec", handler, "--drain"]);
    assert_eq!(report["done"], 1);
    let task = |key: &str| place.json(&["list", "--key", key])[0].clone();
    assert_eq!(task("0"), json!(null));
    assert_eq!((&task("65")["state"], &task("65")["error"]), (&json!("failed"), &json!("oops-65")));
    assert_eq!((&task("1")["state"], &task("1")["error"]), (&json!("failed"), &json!("oops-1")));
    assert_eq!(task("signal")["error"], "killed by signal 9: oops-signal");
    let released = task("75");
    assert_eq!((&released["state"], &released["attempts"]), (&json!("pending"), &json!(0)));
    assert_eq!(released["claims"], 1);
    assert_eq!(place.stats("q")["delayed"], 1);
}

/// Tasks of one batch run one after another, and each has its own time: together
/// they took no longer than all of it.
#[test]
fn an_attempt_is_told_of_with_its_own_time() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    let payloads: String = (0..60).map(|n| format!("{n}\n")).collect();
    place.run_with(&["put", "q", "--from", "-"], payloads.as_bytes());
    let start = Instant::now();
    let told = place.run(&["work", "q", "--exec", "exit 1", "--drain"]).stderr;
    let took = start.elapsed();
    let times: Vec<Duration> = told
        .lines()
        .filter_map(|line| line.rsplit_once("(after ")?.1.strip_suffix(')'))
        .map(|time| match time.strip_suffix("ms") {
            Some(millis) => Duration::from_millis(millis.parse().unwrap()),
            None => Duration::from_secs_f64(time.trim_end_matches('s').parse().unwrap()),
        })
        .collect();
    assert_eq!(times.len(), 60, "{told}");
    assert!(times.iter().sum::<Duration>() <= took, "{took:?}: {told}");
}

#[test]
fn a_program_finds_what_its_last_attempt_kept() {
    let settings = ["q", "max_attempts=2", "backoff.base=0s", "backoff.cap=0s"];
    let place = Place::with(&[&settings]);
    place.ok(&["put", "q", "1"]);
    let handler = "page=$(cat \"$GRISTMILL_CHECKPOINT\" 2>/dev/null || echo 0); \
                   echo \"begins at $page\" >> began; \
                   echo $((page + 1)) > \"$GRISTMILL_CHECKPOINT\"; exit 1";
    place.ok(&["work", "q", "--exec", handler, "--drain"]);
    let failed = place.json(&["show", "1"]);
    assert_eq!((&failed["state"], &failed["checkpoint"]), (&json!("failed"), &json!(2)));
    assert!(place.ok(&["show", "1"]).contains("kept      2 bytes: 2"));
    // An operator's retry goes on, a fresh one begins anew.
    place.ok(&["retry", "1"]);
    place.ok(&["work", "q", "--exec", handler, "--drain"]);
    place.ok(&["retry", "1", "--fresh"]);
    assert_eq!(place.json(&["show", "1"]).get("checkpoint"), None);
    place.ok(&[
        "work",
        "q",
        "--exec",
        "cat \"$GRISTMILL_CHECKPOINT\" && exit 1; exit 0",
        "--drain",
    ]);
    assert_eq!(place.stats("q")["total"], 0, "there was no file, and it is done");
    let began = std::fs::read_to_string(place.path("began")).unwrap();
    let wanted: Vec<String> = (0..4).map(|page| format!("begins at {page}")).collect();
    assert_eq!(began.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_worker_leaves_nothing_in_the_temporary_folder() {
    let place = Place::with(&[&["q"]]);
    std::fs::create_dir(place.path("temporary")).unwrap();
    for payload in ["1", "2"] {
        place.ok(&["put", "q", payload]);
    }
    let handler = "echo kept > \"$GRISTMILL_CHECKPOINT\"";
    let words = ["work", "q", "--exec", handler, "--drain", "--processors", "2"];
    let mut work = place.command(&words);
    let output = work.env("TMPDIR", place.path("temporary")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.stats("q")["total"], 0);
    let left: Vec<_> = std::fs::read_dir(place.path("temporary")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_a_program_keeps_is_kept_while_it_runs() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "echo here > \"$GRISTMILL_CHECKPOINT\"; while [ ! -e go ]; do sleep 0.05; done";
    let working = place.start(&["work", "q", "--exec", handler, "--drain"]);
    eventually("it is kept", || {
        place.json(&["show", "1"])["checkpoint"] == json!({ "text": "here\n" })
    });
    place.write("go", "");
    assert_eq!(working.end().0, 0);
    assert_eq!(place.stats("q")["total"], 0);
}

#[test]
fn how_far_a_program_is_is_shown_while_it_runs() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "echo '1/4 rows' > \"$GRISTMILL_PROGRESS\"; echo '3/4 of them' >> \
                   \"$GRISTMILL_PROGRESS\"; while [ ! -e go ]; do sleep 0.05; done; \
                   echo \"$GRISTMILL_PROGRESS\" > where";
    let working = place.start(&["work", "q", "--exec", handler, "--drain"]);
    let progress = || place.json(&["show", "1"])["progress"].clone();
    eventually("it is told", || progress()["done"] == 3);
    let told = progress();
    assert_eq!((&told["total"], &told["percent"]), (&json!(4), &json!(75)));
    assert_eq!(told["message"], "of them");
    let shown = place.ok(&["show", "1"]);
    assert!(shown.contains("progress  75 % 3/4 of them (said "), "{shown}");
    for asked in [&["list", "--state", "processing"][..], &["workers"]] {
        let shown = place.ok(asked);
        assert!(shown.contains("progress") && shown.contains("75 % 3/4 of them"), "{shown}");
    }
    let listed = place.json(&["list", "--state", "processing"]);
    assert_eq!(listed[0]["progress"], told);
    let workers = place.json(&["workers"]);
    assert_eq!(workers[0]["running"], json!([{ "task": 1, "queue": "q", "progress": told }]));
    place.write("go", "");
    assert_eq!(working.end().0, 0);
    let file = std::fs::read_to_string(place.path("where")).unwrap();
    assert!(!std::path::Path::new(file.trim()).exists(), "{file}");
    assert!(!place.ok(&["list"]).contains("progress"));
}

#[test]
fn without_words_the_exit_status_is_the_error() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.ok(&["put", "q", "1"]);
    place.ok(&["work", "q", "--exec", "exit 7", "--drain"]);
    assert_eq!(place.json(&["failed"])[0]["error"], "exit status 7");
}

#[test]
fn the_last_4_kib_of_standard_error_are_kept() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1";
    place.ok(&["work", "q", "--exec", handler, "--drain"]);
    let failed = place.json(&["failed"]);
    let error = failed[0]["error"].as_str().unwrap();
    assert!(error.ends_with("line 1999") && error.len() <= 4096 && error.len() > 4000);
}

#[test]
fn a_handler_knows_its_task() {
    let place = Place::with(&[&["q", "slots=2"]]);
    place.ok(&["put", "q", "{\"to\":\"ada\"}", "--key", "k", "--group", "g", "--source", "s"]);
    let handler = "env | grep ^GRISTMILL_TASK_ | sort; cat; echo";
    let said = place.ok(&["work", "q", "--exec", handler, "--drain"]);
    for line in [
        "GRISTMILL_TASK_ID=1",
        "GRISTMILL_TASK_QUEUE=q",
        "GRISTMILL_TASK_KEY=k",
        "GRISTMILL_TASK_ATTEMPT=1",
        "GRISTMILL_TASK_CONCURRENT=0",
        "GRISTMILL_TASK_SLOT=0",
        "GRISTMILL_TASK_GROUP=g",
        "GRISTMILL_TASK_SOURCE=s",
        "GRISTMILL_TASK_ENCODING=json",
        "{\"to\":\"ada\"}",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is missing:\n{said}");
    }
}

#[test]
fn what_is_not_known_is_not_inherited_either() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let exec = ["work", "q", "--drain", "--exec", "echo key:${GRISTMILL_TASK_KEY-none}"];
    let out = place.command(&exec).env("GRISTMILL_TASK_KEY", "outer").output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap().trim(), "key:none");
}

#[test]
fn a_handler_need_not_read_its_payload() {
    let place = Place::with(&[&["q"]]);
    let large = format!("\"{}\"", "x".repeat(900_000));
    for _ in 0..3 {
        assert_eq!(place.run_with(&["put", "q", "-"], large.as_bytes()).code, 0);
    }
    let report = place.json(&["work", "q", "--exec", "true", "--drain"]);
    assert_eq!(report["done"], 3);
    place.run_with(&["put", "q", "-"], large.as_bytes());
    let said = place.ok(&["work", "q", "--exec", "wc -c", "--drain"]);
    assert_eq!(said.trim(), "900002");
}

#[test]
fn what_stays_behind_and_holds_standard_error_holds_nobody_up() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let start = Instant::now();
    place.ok(&["work", "q", "--exec", "sleep 20 > /dev/null & exit 0", "--drain"]);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert_eq!(place.stats("q")["total"], 0);
}

#[test]
fn the_timeout_ends_the_whole_group() {
    let place = Place::with(&[&["q", "max_attempts=1", "timeout=500ms"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "sleep 300 & echo $! > inner; echo $$ > outer; wait";
    place.ok(&["work", "q", "--exec", handler, "--drain"]);
    let failed = place.json(&["failed"]);
    assert_eq!(failed[0]["history"][0]["outcome"], "timed_out");
    for name in ["inner", "outer"] {
        let pid = std::fs::read_to_string(place.path(name)).unwrap();
        assert!(!is_alive(&pid), "{name} {pid} is still there");
    }
}

#[test]
fn a_handler_that_will_not_end_is_killed() {
    let place = Place::with(&[&["q", "max_attempts=1", "timeout=300ms"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "trap '' TERM; echo $$ > outer; sleep 300; sleep 300";
    place.ok(&["work", "q", "--exec", handler, "--drain"]);
    let pid = std::fs::read_to_string(place.path("outer")).unwrap();
    eventually("its end", || !is_alive(&pid));
    assert_eq!(place.json(&["failed"])[0]["history"][0]["outcome"], "timed_out");
}

#[test]
fn with_json_only_the_report_is_on_standard_output() {
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let answer = place.run(&["work", "q", "--exec", "echo chatter", "--drain", "--json"]);
    assert_eq!(
        answer.stdout.trim(),
        r#"{"done":1,"failed":0,"lease_lost":0,"not_done":0,"released":0}"#,
        "{answer:?}"
    );
    assert!(answer.stderr.contains("chatter"));
}

#[test]
fn a_handler_does_not_learn_where_the_store_is_unless_asked() {
    let place = Place::new();
    let url = "sqlite://here.db";
    let say = "echo store:${GRISTMILL_STORE-none} log:${GRISTMILL_LOG-none}";
    let work = |more: &[&str]| {
        assert!(place.command(&["put", "q", "1", "--create", "--store", url]).status().is_ok());
        let words = ["work", "q", "--drain", "--exec", say];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let mut command = place.command(&words);
        let out =
            command.env("GRISTMILL_STORE", url).env("GRISTMILL_LOG", "warn").output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(work(&[]), "store:none log:none");
    assert_eq!(work(&["--with-store"]), "store:sqlite://here.db log:none");
}

#[test]
fn a_command_that_cannot_be_run_burns_no_task() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.write("not-executable", "true");
    for (command, code) in [("./not-there", "127"), ("./not-executable", "126")] {
        for _ in 0..5 {
            place.ok(&["put", "q", "1"]);
        }
        for more in [&["--drain"][..], &["--processors", "3"]] {
            let words = ["work", "q", "--exec", command];
            let words: Vec<&str> = words.iter().chain(more).copied().collect();
            let answer = place.run(&words);
            assert_eq!(answer.code, 1, "{words:?}: {answer:?}");
            assert!(answer.stderr.contains("cannot be run"), "{}", answer.stderr);
            assert!(answer.stderr.contains(code), "{}", answer.stderr);
        }
    }
    let tasks = place.json(&["list"]);
    assert_eq!(tasks.as_array().unwrap().len(), 10);
    for task in tasks.as_array().unwrap() {
        assert_eq!((&task["state"], &task["attempts"]), (&json!("pending"), &json!(0)));
    }
}

/// Only so many releases of a task that was begun are free, and this one never is.
#[test]
fn a_command_that_is_not_there_for_long_burns_no_task() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.ok(&["put", "q", "1"]);
    for _ in 0..22 {
        let answer = place.run(&["work", "q", "--exec", "./not-there", "--drain"]);
        assert_eq!(answer.code, 1, "{answer:?}");
    }
    let tasks = place.json(&["list"]);
    assert_eq!((&tasks[0]["state"], &tasks[0]["attempts"]), (&json!("pending"), &json!(0)));
    // A processor may have claimed once more before it heard of the stop.
    assert!(tasks[0]["claims"].as_u64().unwrap() >= 22, "{tasks}");
}

#[test]
fn a_handler_that_cannot_be_run_does_not_stop_the_others() {
    let place = Place::new();
    place.write(
        "gristmill.yaml",
        "queues:\n  - {name: bad, exec: ./not-there}\n  - {name: good, exec: cat}\n",
    );
    let mut up = place.start(&["up"]);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    place.ok(&["put", "bad", "1"]);
    Running::until(&mut up.stderr, "cannot be run");
    place.ok(&["put", "good", "1"]);
    eventually("the other queue's task", || place.stats("good")["total"] == 0);
    assert_eq!(place.stats("bad")["ready"], 1);
    up.signal(rustix::process::Signal::TERM);
    assert_eq!(up.end().0, 0);
}

/// Kills workers while their handlers wait to read; each handler that read at
/// all, before or after, read everything.
fn kills(rounds: u32) {
    let place = Place::with(&[&[
        "q",
        "lease=1s",
        "max_attempts=unlimited",
        "backoff.base=1ms",
        "backoff.cap=1ms",
    ]]);
    let payload = format!("\"{}\"", "x".repeat(500_000));
    // In a session of its own, so that it outlives the handler that is ended
    // with its worker.
    let handler = "echo $$ >> begun; setsid sh -c 'sleep 0.05; wc -c >> sizes'";
    for round in 0..rounds {
        // One more each time: a kill that comes late finds its task done.
        assert_eq!(place.run_with(&["put", "q", "-"], payload.as_bytes()).code, 0);
        let worker = place.start(&["work", "q", "--exec", handler]);
        let begun = || std::fs::read_to_string(place.path("begun")).unwrap_or_default();
        eventually("a start", || begun().lines().count() as u32 > round);
        worker.kill();
        let pids = begun();
        eventually("the handler's end", || !is_alive(pids.lines().last().unwrap()));
    }
    eventually("what the handlers left", || {
        let sizes = std::fs::read_to_string(place.path("sizes")).unwrap_or_default();
        sizes.lines().count() as u32 >= rounds / 2
    });
    let sizes = std::fs::read_to_string(place.path("sizes")).unwrap();
    assert!(sizes.lines().all(|size| size.trim() == "500002"), "{sizes}");
}

#[test]
fn no_handler_sees_cut_input_or_outlives_a_killed_worker() {
    kills(3);
}

#[test]
#[ignore = "long: 200 killed workers"]
fn long_no_handler_sees_cut_input_or_outlives_a_killed_worker() {
    kills(200);
}

#[test]
fn lists_show_what_a_program_said_last() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "printf 'Traceback (most recent call last):\\n  File \"x\"\\nKeyError: to\\n\\n' >&2; exit 1";
    let worked = place.run(&["work", "q", "--exec", handler, "--drain"]);
    assert!(worked.stderr.contains("failed: KeyError: to"), "{}", worked.stderr);
    for words in [&["failed"][..], &["list", "--state", "failed"]] {
        let shown = place.ok(words);
        assert!(shown.contains("KeyError: to") && !shown.contains("Traceback"), "{shown}");
    }
    let shown = place.ok(&["show", "1"]);
    assert!(shown.contains("Traceback") && shown.contains(": KeyError: to"), "{shown}");
    assert!(place.json(&["failed"])[0]["error"].as_str().unwrap().starts_with("Traceback"));
}

#[test]
fn who_waits_gets_what_the_program_says_and_its_status() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    let worker = place.start(&["work", "q", "--exec", "read x; eval \"$x\""]);
    let put = |script: &str| place.run(&["put", "q", script, "--encoding", "raw", "--wait"]);
    let done = put("echo '{\"sum\": 3}'");
    assert_eq!((done.code, done.stdout.as_str()), (0, "{\"sum\": 3}\n"), "{}", done.stderr);
    let failed = put("echo half; echo 'no such host' >&2; exit 7");
    assert_eq!((failed.code, failed.stdout.as_str()), (7, ""), "{}", failed.stderr);
    assert!(failed.stderr.contains("no such host"), "{}", failed.stderr);
    let killed = put("kill -9 $$");
    assert_eq!(killed.code, 1, "{}", killed.stderr);
    let slow = place.run(&["put", "q", "sleep 60", "--encoding", "raw", "--wait", "100ms"]);
    assert_eq!(slow.code, 75, "{}", slow.stderr);
    assert!(slow.stderr.contains("gristmill show 4"), "{}", slow.stderr);
    for many in [&["--from", "x"][..], &["--lines"]] {
        let said = place.run(&[&["put", "q", "--wait"][..], many].concat());
        assert_eq!(said.code, 2, "{}", said.stderr);
    }
    // What came of it is shown for a while.
    assert!(place.ok(&["show", "1"]).contains("result    {\"sum\": 3}"));
    let shown = place.json(&["show", "1"]);
    assert_eq!((&shown["state"], &shown["result"]["sum"]), (&json!("done"), &json!(3)));
    worker.kill();
}

#[test]
fn what_is_too_long_is_cut_in_its_middle_and_says_so() {
    let place = Place::with(&[&["q", "keep_result=1h"]]);
    place.ok(&["put", "q", "1"]);
    let handler = "echo first; yes 0123456789 | head -c 200000; echo last";
    let worked = place.run(&["work", "q", "--exec", handler, "--drain"]);
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    assert!(
        worked.stderr.contains("task 1: its result is cut to 65536 bytes"),
        "{}",
        worked.stderr
    );
    let shown = place.json(&["show", "1"]);
    let result = shown["result"]["text"].as_str().unwrap();
    assert!(result.starts_with("first\n0123") && result.ends_with("last\n"), "{}", result.len());
    assert!(result.len() <= 65_536 && result.contains(" bytes left out]"));
    // Where nobody asks for it, it goes where the worker's goes.
    let place = Place::with(&[&["q"]]);
    place.ok(&["put", "q", "1"]);
    let worked = place.run(&["work", "q", "--exec", "echo said", "--drain"]);
    assert!(worked.stdout.contains("said\n"), "{}", worked.stdout);
    assert_eq!(place.run(&["show", "1"]).code, 3);
}

#[test]
fn a_drain_in_which_tasks_failed_says_so() {
    let place = Place::with(&[&["q", "max_attempts=2", "backoff.base=1h"]]);
    place.ok(&["put", "q", "1"]);
    place.ok(&["put", "q", "2"]);
    // An error that is tried again is none yet.
    let handler = "test $(cat) = 1 && exit 65; exit 1";
    let drained = place.run(&["work", "q", "--exec", handler, "--drain", "--json"]);
    assert_eq!(drained.code, 3, "{drained:?}");
    let report: serde_json::Value = serde_json::from_str(drained.stdout.trim()).unwrap();
    assert_eq!((&report["not_done"], &report["failed"]), (&json!(2), &json!(1)));
    let error: serde_json::Value =
        serde_json::from_str(drained.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "tasks_failed");
    let quiet = place.run(&["work", "q", "--exec", handler, "--drain"]);
    assert_eq!(quiet.code, 0, "{quiet:?}");
}
