//! The short form of the judge's runs: clients as processes, killed, stopped, sent
//! away and replaced, on every store that outlives them. The long form is the same
//! program for longer: see docs/reliability.md.

use std::process::{Command, Output};

use gristmill_conformance::judge::Verdict;

fn judge(words: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gristmill-judge"));
    program.args(words).output().expect("the program runs")
}

/// Runs it, asserts that nothing was found and that enough was seen.
fn is_found_sound(store: &str, seconds: &str, faults: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run").display().to_string();
    let ledger = folder.path().join("ledger.jsonl").display().to_string();
    let mut words = vec!["run", "--store", store, "--seconds", seconds, "--faults", faults];
    words.extend(["--seed", "7", "--folder", &run, "--ledger", &ledger, "--json"]);
    let output = judge(&words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let also = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{also}");
    let entry: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let verdict: Verdict =
        serde_json::from_value(entry.get("verdict").expect("a verdict").clone()).expect("one");
    println!("{:?}", verdict.tally);
    // A run that saw too little proves nothing. A busy machine sees less.
    let seen = &verdict.tally;
    assert!(seen.operations > 300 && seen.settled > 50, "{seen:?}");
    assert!(seen.redelivered > 0 && !seen.faults.is_empty(), "{seen:?}");
    // It can be judged again from its folder alone, with the same result.
    let again = judge(&["judge", &run, "--json"]);
    let again: Verdict = serde_json::from_slice(&again.stdout).expect("a verdict");
    assert_eq!(again, verdict);
    let lines = std::fs::read_to_string(&ledger).expect("a ledger");
    assert_eq!(lines.lines().count(), 1);
    let sum = judge(&["ledger", &ledger]);
    let said = String::from_utf8_lossy(&sum.stdout).into_owned();
    assert!(sum.status.success() && said.contains("| all | 1 |"), "{said}");
}

#[test]
fn crash_judged_on_sqlite() {
    is_found_sound("sqlite:", "8", "kill,stop,join");
}

#[test]
fn crash_judged_on_files() {
    is_found_sound("files:", "8", "kill,stop,join");
}

#[test]
fn crash_judged_on_postgres() {
    is_found_sound("postgres:", "12", "kill,stop,join,server_kill,cut");
}

#[test]
fn crash_judged_while_the_clock_jumps() {
    is_found_sound("sqlite:", "6", "kill,clock");
}

/// What a judge is for: a run that lost a task is not found sound.
#[test]
fn a_folder_with_a_loss_is_told_as_a_story() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write(
        "producer-1.jsonl",
        concat!(
            r#"{"t":1,"w":1,"n":1,"call":{"put":{"queue":"plain","tasks":[{"payload":"p"}]}}}"#,
            "\n",
            r#"{"t":2,"w":2,"n":1,"answer":{"put":[{"enqueued":1}]}}"#,
            "\n"
        ),
    );
    let plan = r#"{"store":"","seed":1,"lease_ms":700,"queues":[],"passes_by_ms":0,"exact_capacity":true}"#;
    write("plan.json", plan);
    write("standing.json", r#"{"tasks":[],"counts":[],"findings":[]}"#);
    let output = judge(&["judge", &folder.path().display().to_string()]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("lost: task 1 was acknowledged and is nowhere: p"), "{said}");
    assert!(said.contains("producer-1 #1 calls"), "{said}");
}

#[test]
fn what_cannot_be_is_refused_in_plain_words() {
    for (words, said) in [
        (vec!["run", "--faults", "quake"], "there is no fault 'quake'"),
        (vec!["run", "--store", "memory:", "--faults", "power"], "lives in one process"),
        (vec!["run", "--store", "sqlite:", "--faults", "promote"], "the store has no server"),
        (vec!["judge", "/nowhere"], "/nowhere"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("run").display().to_string();
        let ledger = folder.path().join("ledger.jsonl").display().to_string();
        let mut all = words.clone();
        if words.first() == Some(&"run") {
            all.extend(["--folder", &run, "--ledger", &ledger]);
        }
        let output = judge(&all);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(said), "{words:?}: {told}");
    }
}

/// A real store with a real defect: a trigger that drops some of what was put. The
/// clients and the judge know nothing of it.
#[test]
fn crash_a_postgres_that_loses_tasks_is_caught() {
    let server = gristmill_pgserver::Server::private().expect("PostgreSQL runs");
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = folder.path().join("ledger.jsonl").display().to_string();
    let run = |name: &str, seconds: &str| {
        let place = folder.path().join(name).display().to_string();
        let url = server.url();
        let words = ["run", "--store", &url, "--seconds", seconds, "--faults", "none"];
        let more = ["--patience", "5", "--folder", &place, "--ledger", &ledger, "--json"];
        judge(&[words.as_slice(), more.as_slice()].concat())
    };
    let sound = run("sound", "1");
    assert!(sound.status.success(), "{}", String::from_utf8_lossy(&sound.stdout));
    let lossy = "
        CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN DELETE FROM gristmill.task WHERE id = NEW.id; RETURN NULL; END $$;
        CREATE TRIGGER lose AFTER INSERT ON gristmill.task
            FOR EACH ROW WHEN (NEW.id % 20 = 0) EXECUTE FUNCTION lose();";
    server.psql("postgres", lossy).expect("a trigger");
    let lossy = run("lossy", "3");
    let said = String::from_utf8_lossy(&lossy.stdout);
    assert_eq!(lossy.status.code(), Some(1), "{said}");
    let entry: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert!(entry.pointer("/verdict/counted/lost").is_some(), "{said}");
}
