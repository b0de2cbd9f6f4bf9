//! Whatever is wrong, the answer is one sentence that says what to do, a
//! documented exit code, and a store that is as it was.

use serde_json::Value;

use crate::place::Place;

/// What was typed, what came on standard input, the exit code, and words of
/// the sentence.
type Row = (&'static [&'static str], &'static str, i32, &'static [&'static str]);

const LONG: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // The command line.
    (&["sats"], "", 2, &["unrecognized subcommand 'sats'", "'stats'"]),
    (&["stats", "--jsn"], "", 2, &["--jsn", "--json"]),
    (&["put"], "", 2, &["<QUEUE>", "gristmill put --help"]),
    (&["put", "emails"], "", 2, &["payload is missing", "--from FILE"]),
    (&["put", "emails", "1", "--delay", "5s", "--at", "2030-01-01T00:00:00Z"], "", 2, &["--delay", "--at", "cannot be used with"]),
    (&["put", "emails", "1", "--delay", "5"], "", 2, &["'5' is not a duration", "unit is missing", "5s"]),
    (&["put", "emails", "1", "--delay", "-5s"], "", 2, &["is not a duration"]),
    (&["put", "emails", "1", "--delay", "5 minutes"], "", 2, &["is not a duration"]),
    (&["put", "emails", "1", "--at", "tomorrow"], "", 2, &["'tomorrow' is not a time", "no time of day", "'tomorrow 9:00'", "2026-11-15T08:30:00Z"]),
    (&["put", "emails", "1", "--at", "soon"], "", 2, &["'soon' is not a time", "'17:30'", "2026-11-15T08:30:00Z"]),
    (&["put", "emails", "a.txt", "--lines"], "b.txt\n", 2, &["--lines reads", "leave the payload out"]),
    (&["put", "emails", "--lines", "--key", "k"], "a\n", 2, &["--lines", "--key", "cannot be used with"]),
    (&["put", "emails", "--from", "-", "--encoding", "msgpack"], "a\n", 2, &["msgpack has none"]),
    (&["put", "emails", "--from", "-"], "a.txt\n", 2, &["line 1 is not a task", "say --lines", "nothing was put"]),
    (&["put", "emails", "-"], "", 3, &["the payload is empty", "--allow-empty"]),
    (&["put", "emails", ""], "", 3, &["the payload is empty", "--allow-empty"]),
    (&["put", "emails", "1", "--priority", "99999"], "", 2, &["99999", "-32768..=32767"]),
    (&["put", "emails", "1", "--priority", "urgent"], "", 2, &["urgent", "--priority"]),
    (&["put", "emails", "1", "--key", ""], "", 2, &["--key is empty"]),
    (&["put", "emails", "1", "--key", LONG], "", 2, &["--key has 528 bytes and 512 are allowed"]),
    (&["put", "emails", "1", "--encoding", "xml"], "", 2, &["'xml' is not an encoding", "json, msgpack or raw"]),
    (&["put", "emails", "{broken"], "", 2, &["payload is not JSON", "--encoding raw"]),
    (&["put", "emails", "-"], "[1,", 2, &["payload is not JSON"]),
    (&["put", "bad name", "1"], "", 2, &["'bad name' is not a queue name"]),
    (&["put", "emails", "1", "--from", "lines"], "", 2, &["cannot be used with"]),
    (&["put", "emails", "--from", "nowhere.ndjson"], "", 2, &["nowhere.ndjson cannot be read", "--from"]),
    (&["put", "emails", "--from", "."], "", 2, &["is a folder"]),
    (&["put", "emails", "--from", "-"], "1\n2\n{\"a\":\n4\n", 2, &["line 3 is not a task", "nothing was put"]),
    (&["put", "emails", "--from", "-", "--envelope"], "{\"payload\":1}\n{\"pay\":1}\n", 2, &["line 2", "unknown field `pay`"]),
    (&["put", "emails", "--from", "-", "--envelope"], "{\"payload\":1,\"delay\":\"5s\",\"at\":\"2030-01-01T00:00:00Z\"}\n", 2, &["line 1", "both delay and at"]),
    (&["put", "emails", "1", "--envelope"], "", 2, &["--from"]),
    (&["show", "seven"], "", 2, &["'seven' is not a task id", "42"]),
    (&["show", "0"], "", 2, &["'0' is not a task id"]),
    (&["retry"], "", 2, &["which tasks?", "--all"]),
    (&["retry", "1", "--all"], "", 2, &["cannot be used with", "--all"]),
    (&["retry"], "", 2, &["--error, --since"]),
    (&["retry", "1", "--error", "x"], "", 2, &["leave --error and --since out"]),
    (&["retry", "1", "--limit", "2"], "", 2, &["cannot be used with", "--limit"]),
    (&["retry", "--all", "--limit", "0"], "", 2, &["--limit 0"]),
    (&["retry", "--error", ""], "", 2, &["--error is empty"]),
    (&["discard", "--since", "yesterday"], "", 2, &["--since", "is not a duration"]),
    (&["cancel", "--error", "x"], "", 2, &["--error"]),
    (&["failed", "--by-error", "--limit", "0"], "", 2, &["--limit 0"]),
    (&["failed", "emials"], "", 3, &["no queue 'emials'", "did you mean 'emails'?"]),
    (&["discard", "1", "x"], "", 2, &["'x' is not a task id"]),
    (&["cancel", "--queue", "a/b"], "", 2, &["is not a queue name"]),
    (&["retry", "1", "--by", ""], "", 2, &["--by is empty"]),
    (&["top"], "", 2, &["top needs a terminal", "stats --watch"]),
    (&["top", "--every", "1ms"], "", 2, &["too often"]),
    (&["stats", "--watch=1ms"], "", 2, &["too often", "100ms"]),
    (&["stats", "--watch=5"], "", 2, &["--watch", "unit is missing"]),
    (&["list", "--state", "stuck"], "", 2, &["'stuck' is not a state", "delayed"]),
    (&["list", "--limit", "0"], "", 2, &["--limit 0"]),
    (&["list", "--limit", "-1"], "", 2, &["-1"]),
    (&["failed", "--state", "pending"], "", 2, &["list --state pending"]),
    (&["work", "emails"], "", 2, &["--exec <CMD>"]),
    (&["work", "emails", "--exec", " "], "", 2, &["--exec is empty"]),
    (&["work", "emails", "--exec", "true", "--processors", "0"], "", 2, &["--processors 0", "from 1"]),
    (&["work", "emails", "--exec", "true", "--batch", "5000"], "", 2, &["--batch 5000", "to 1000"]),
    (&["work", "emails", "--exec", "true", "--lease", "1ms"], "", 2, &["--lease is too short"]),
    (&["claim"], "", 2, &["<QUEUE>", "gristmill claim --help"]),
    (&["claim", "emails", "--max", "0"], "", 2, &["--max 0"]),
    (&["claim", "emails", "--max", "2", "--payload", "x"], "", 2, &["--payload is for one task"]),
    (&["claim", "emails", "--lease", "1"], "", 2, &["unit is missing"]),
    (&["claim", "emials"], "", 3, &["no queue 'emials'", "did you mean 'emails'?"]),
    (&["settle", "1", "--token", "00000000000000000000000000000000"], "", 2, &["--done", "--error <TEXT>"]),
    (&["settle", "1", "--done", "--fail", "x"], "", 2, &["cannot be used with"]),
    (&["settle", "1", "--done"], "", 2, &["whose claim?", "GRISTMILL_TOKEN"]),
    (&["done"], "", 2, &["which task?", "GRISTMILL_TASK_ID"]),
    (&["done", "1", "--token", "secret"], "", 2, &["32 hexadecimal digits"]),
    (&["done", "1", "--token", "00000000000000000000000000000000"], "", 3, &["the lease of 1 was lost"]),
    (&["fail", "1", "--token", "00000000000000000000000000000000", "--error", " "], "", 2, &["--error is empty"]),
    (&["extend", "--token", "00000000000000000000000000000000"], "", 3, &["the lease was lost"]),
    (&["queue", "add", "new", "timeuot=5s"], "", 2, &["no setting 'timeuot'", "did you mean 'timeout'"]),
    (&["queue", "add", "new", "timeout=5"], "", 2, &["timeout", "unit is missing"]),
    (&["queue", "add", "new", "max_attempts=0"], "", 2, &["max_attempts is 0"]),
    (&["queue", "add", "new", "unique=active", "on_duplicate=replace"], "", 2, &["unique: pending"]),
    (&["queue", "add", "new", "loud"], "", 2, &["'loud' sets nothing", "max_attempts=3"]),
    (&["queue", "set", "emails"], "", 2, &["NAME=VALUE"]),
    (&["schedules", "add", "s", "emails", "1"], "", 2, &["--cron <EXPR>", "--every <DURATION>"]),
    (&["schedules", "add", "s", "emails", "1", "--cron", "61 * * * *"], "", 2, &["not a cron expression", "minute, hour"]),
    (&["schedules", "add", "s", "emails", "1", "--every", "5"], "", 2, &["--every", "unit is missing"]),
    (&["schedules", "add", "s", "emails", "1", "--every", "5s", "--zone", "Mars/Olympus"], "", 2, &["not a time zone"]),
    (&["schedules", "add", "s", "emails", "{x", "--every", "5s"], "", 2, &["not JSON"]),
    (&["schedules", "add", "s", "emials", "1", "--every", "5s"], "", 3, &["no queue 'emials'", "did you mean 'emails'?"]),
    (&["schedules", "puase", "tick"], "", 2, &["unrecognized subcommand 'puase'", "'pause'"]),
    (&["schedules", "pause"], "", 2, &["<NAME>"]),
    (&["schedules", "fire", "a b"], "", 2, &["'a b' is not a schedule name"]),
    (&["schedules", "pause", "tick", "--by", ""], "", 2, &["--by is empty"]),
    (&["completions", "tcsh"], "", 2, &["tcsh", "bash"]),
    (&["backup", "gristmill.db"], "", 2, &["exists", "new file"]),
    // What is not there, and what is not taken.
    (&["put", "emials", "1"], "", 3, &["no queue 'emials'", "did you mean 'emails'?"]),
    (&["put", "payments", "1"], "", 3, &["no queue 'payments'", "queue add payments"]),
    (&["put", "emials", "--from", "-"], "1\n2\n", 3, &["no queue 'emials'", "did you mean 'emails'?"]),
    (&["put", "full", "1"], "", 3, &["the queue is full", "capacity"]),
    (&["put", "emails", "2", "--id", "once"], "", 3, &["with another payload", "another id"]),
    (&["stats", "emials"], "", 3, &["no queue 'emials'", "did you mean 'emails'?"]),
    (&["list", "emials"], "", 3, &["no queue 'emials'"]),
    (&["retry", "--queue", "emials"], "", 3, &["no queue 'emials'"]),
    (&["pause", "emails", "emials"], "", 3, &["no queue 'emials'"]),
    (&["queue", "reset", "emials"], "", 3, &["no queue 'emials'"]),
    (&["queue", "set", "emials", "timeout=1s"], "", 3, &["no queue 'emials'"]),
    (&["work", "emials", "--exec", "true", "--drain"], "", 3, &["no queue 'emials'"]),
    (&["show", "99"], "", 3, &["no task 99", "gristmill list"]),
    (&["retry", "99"], "", 3, &["1 task not retried", "task 99 is not there", "'gristmill failed' shows what failed"]),
    (&["retry", "1"], "", 3, &["task 1 is pending", "gristmill show 1"]),
    (&["schedules", "pause", "noon"], "", 3, &["no schedule 'noon'", "gristmill schedules"]),
    (&["schedules", "resume", "noon"], "", 3, &["no schedule 'noon'"]),
    (&["schedules", "fire", "noon"], "", 3, &["no schedule 'noon'"]),
    (&["schedules", "remove", "noon"], "", 3, &["no schedule 'noon'"]),
    // Stores that are none.
    (&["stats", "--store", "gristmill.db"], "", 2, &["not a store's URL", "sqlite://PATH"]),
    (&["stats", "--store", "mysql://x"], "", 2, &["no store 'mysql:'", "sqlite://PATH"]),
    (&["bench", "--store", "mysql://x"], "", 2, &["no store 'mysql:'", "sqlite://PATH"]),
    (&["bench", "--only", "speed"], "", 2, &["--only speed", "bulk_put, claim_settle"]),
    (&["bench", "--store", "memory:", "--only", "put_8"], "", 2, &["memory_cycle, start_memory"]),
    (&["stats", "--store", "sqlite://"], "", 2, &["names no file"]),
    (&["put", "emails", "1", "--store", "memory:"], "", 2, &["memory: is gone", "only 'up'"]),
    (&["stats", "--store", "sqlite://nowhere.db"], "", 5, &["no store at nowhere.db", "gristmill up"]),
    (&["put", "emails", "1", "--store", "sqlite://nowhere.db"], "", 5, &["no store at nowhere.db", "say --create"]),
    (&["put", "emails", "--lines", "--store", "sqlite://nowhere.db"], "a\n", 5, &["no store at nowhere.db", "say --create"]),
    (&["stats", "--store", "sqlite://text.txt"], "", 5, &["text.txt is not an SQLite database", "--store"]),
    (&["queue", "add", "x", "--store", "sqlite://text.txt"], "", 5, &["not an SQLite database"]),
    (&["stats", "--store", "sqlite://newer.db"], "", 5, &["newer gristmill"]),
    (&["put", "emails", "1", "--store", "sqlite://newer.db"], "", 5, &["newer gristmill"]),
    (&["stats", "--store", "sqlite://folder"], "", 5, &["folder is a folder, not a store"]),
    (&["queue", "add", "x", "--store", "sqlite://text.txt/a.db"], "", 5, &["text.txt is not a folder"]),
    (&["queue", "add", "x", "--store", "sqlite://missing/a.db"], "", 5, &["missing is not a folder"]),
    (&["backup", "missing/copy.db"], "", 5, &["missing/copy.db"]),
    // Configurations.
    (&["up", "--config", "none.yaml"], "", 2, &["there is no none.yaml", "gristmill init --exec DIR", "--config"]),
    (&["up", "--config", "folder"], "", 2, &["is a folder"]),
    (&["up", "--config", "bracket.yaml"], "", 2, &["bracket.yaml:1:9", "unclosed bracket"]),
    (&["up", "--config", "tab.yaml"], "", 2, &["tab.yaml:2:", "tabs"]),
    (&["up", "--config", "twice.yaml"], "", 2, &["twice.yaml:3:", "said twice"]),
    (&["up", "--config", "list.yaml"], "", 2, &["list.yaml:1:1", "fields"]),
    (&["up", "--config", "empty.yaml"], "", 2, &["no queues"]),
    (&["up", "--config", "binary.yaml"], "", 2, &["not text in UTF-8"]),
    (&["up", "--config", "values.yaml"], "", 2, &["values.yaml:3:23", "unit is missing", "values.yaml:4:17", "from 1 to 1000", "values.yaml:6:13", "no queue 'q2'"]),
    (&["config", "check", "--config", "field.yaml"], "", 2, &["field.yaml:2:5", "no field 'nme'", "did you mean 'name'"]),
    (&["up", "--config", "schedule.yaml"], "", 2, &["schedule.yaml:4:31", "not a cron expression", "schedule.yaml:5:22", "no queue 'q2'", "schedule.yaml:6:32", "unit is missing", "schedule.yaml:7:55", "not a time zone"]),
    (&["config", "check", "--config", "schedule.yaml"], "", 2, &["schedule.yaml:4:31"]),
    (&["config", "check", "--config", "program.yaml"], "", 2, &["program.yaml:3: there is no program './not-there' for queue 'a'"]),
    (&["up", "--config", "idle.yaml"], "", 2, &["no queue has a handler"]),
];

fn place() -> Place {
    let place = Place::with(&[&["emails"], &["full", "capacity=1"]]);
    place.ok(&["put", "emails", "1", "--key", "k", "--id", "once"]);
    place.ok(&["put", "full", "1"]);
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("text.txt", "this is a text and certainly not a database\n".repeat(100));
    place.write("bracket.yaml", "queues: [\n");
    place.write("tab.yaml", "queues:\n\t- name: a\n");
    place.write("twice.yaml", "queues:\n  - name: a\n    name: b\n");
    place.write("list.yaml", "- name: a\n");
    place.write("empty.yaml", "");
    place.write("binary.yaml", [0xff, 0xfe, 0x00]);
    place.write("field.yaml", "queues:\n  - nme: a\n");
    place.write("program.yaml", "queues:\n  - name: a\n    exec: ./not-there --to x\n  - name: b\n    exec: TO=x ./not-there\n");
    place.write("idle.yaml", "queues:\n  - name: a\n");
    place.write(
        "values.yaml",
        "queues:\n  - name: q\n    settings: {lease: 5}\n    processors: 0\nseed:\n  - {queue: q2, payload: 1, id: a}\n",
    );
    place.write(
        "schedule.yaml",
        "queues:\n  - name: q\nschedules:\n  - {name: s, queue: q, cron: 0 25 * * *, payload: 1}\n  - {name: t, queue: q2, every: 5s, payload: 1}\n  - {name: u, queue: q, every: 10, payload: 1}\n  - {name: v, queue: q, every: 10s, payload: 1, zone: Mars/Olympus}\n",
    );
    place.ok(&["backup", "newer.db"]);
    let newer = gristmill::sqlite::rusqlite::Connection::open(place.path("newer.db")).unwrap();
    newer
        .execute(
            "INSERT INTO gristmill_migration (version, checksum, applied_at) VALUES (999, 'x', 0)",
            [],
        )
        .unwrap();
    place
}

/// Everything that a mistake must leave alone; only waiting grows by itself.
fn standing(place: &Place) -> Value {
    let mut stats = place.json(&["stats"]);
    for queue in stats.as_array_mut().unwrap() {
        queue.as_object_mut().unwrap().remove("wait_ms");
        // A refused put is counted as such, rightly.
        queue.as_object_mut().unwrap().remove("counters");
    }
    Value::Array(vec![
        stats,
        place.json(&["list"]),
        place.json(&["queue", "list"]),
        place.json(&["schedules"]),
    ])
}

#[test]
fn every_mistake_gets_a_sentence_and_changes_nothing() {
    assert!(ROWS.len() >= 30);
    let place = place();
    let mut before = standing(&place);
    let mut wrong = Vec::new();
    for (args, stdin, code, parts) in ROWS {
        let answer = place.run_with(args, stdin.as_bytes());
        let sentence = answer.stderr.trim_end();
        let is_config = sentence.contains(".yaml:");
        let fits = answer.code == *code
            && parts.iter().all(|part| sentence.contains(part))
            && sentence.starts_with("gristmill: ")
            && (is_config || !sentence.contains('\n'))
            && !place.path("nowhere.db").exists()
            && !place.path("missing").exists();
        if !fits {
            wrong.push(format!("{args:?}: wanted {code} {parts:?}, got {answer:?}"));
        }
        // Programs get the same as one line of JSON.
        let words: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let answer = place.run_with(&words, stdin.as_bytes());
        let error: Value = serde_json::from_str(answer.stderr.trim_end()).unwrap_or_default();
        let code_fits = answer.code == *code && error["error"]["code"].is_string();
        let message = error["error"]["message"].as_str().unwrap_or_default();
        if !code_fits || !parts.iter().all(|part| message.contains(part)) {
            wrong.push(format!("{words:?}: got {answer:?}"));
        }
        let after = standing(&place);
        if after != before {
            wrong.push(format!("{args:?} changed the store: {before} became {after}"));
            before = after;
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[test]
fn a_payload_over_the_limit_is_refused() {
    let place = place();
    let before = standing(&place);
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let answer = place.run_with(&["put", "emails", "-", "--json"], large.as_bytes());
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert_eq!(
        answer.stdout.trim(),
        r#"{"outcome":"refused","id":null,"reason":"payload_too_large"}"#
    );
    assert!(answer.stderr.contains("1048578 bytes and 1048576 are allowed"), "{}", answer.stderr);
    assert_eq!(standing(&place), before);
}

#[test]
fn a_store_nobody_may_write_says_so() {
    let place = place();
    let copy = place.path("locked.db");
    place.ok(&["backup", "locked.db"]);
    let mut mode = std::fs::metadata(&copy).unwrap().permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&copy, mode).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&copy).is_ok() {
        // Whoever may do everything cannot be denied anything.
        return;
    }
    let answer = place.run(&["put", "emails", "1", "--store", "sqlite://locked.db"]);
    assert_eq!(answer.code, 5, "{}", answer.stderr);
    assert!(answer.stderr.contains("no permission"), "{}", answer.stderr);
}

#[test]
fn a_mistake_in_the_middle_keeps_what_was_acknowledged() {
    let place = place();
    let mut lines = "1\n".repeat(1_500);
    lines.push_str("{broken\n");
    let answer = place.run_with(&["put", "emails", "--from", "-"], lines.as_bytes());
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("line 1501 is not a task"), "{}", answer.stderr);
    assert!(answer.stderr.contains("lines 1 to 1000 were put (1000 enqueued"), "{}", answer.stderr);
    assert_eq!(place.stats("emails")["ready"], 1_001);
}

#[test]
fn help_and_version_are_no_mistakes() {
    let place = Place::new();
    assert!(place.ok(&["--version"]).starts_with("gristmill "));
    let help = place.ok(&["--help"]);
    assert!(help.contains("Exit codes:") && help.contains("130"), "{help}");
    assert!(place.ok(&["put", "--help"]).contains("Examples:"));
    let bare = place.run(&[]);
    assert_eq!(bare.code, 2);
    assert!(bare.stderr.contains("Usage:"), "{}", bare.stderr);
}
