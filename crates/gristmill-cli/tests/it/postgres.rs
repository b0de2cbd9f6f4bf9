//! The commands on PostgreSQL, and the transcripts of `docs/sql.md`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use gristmill_pgserver::{Database, Error, Server};
use serde_json::json;

use crate::place::Place;

/// A database that `gristmill migrate` made the schema in.
pub(crate) fn migrated() -> Database {
    let server = Server::shared().unwrap();
    server
        .database("migrated", |url| {
            let answer = Place::new().run(&["--store", url, "migrate"]);
            if answer.code == 0 { Ok(()) } else { Err(Error::new(answer.stderr)) }
        })
        .unwrap()
}

/// As [`migrated`], with the store's roles, and a login for each.
pub(crate) fn with_roles() -> Database {
    let database = migrated();
    Place::new().ok(&["--store", &database.url(), "migrate", "--roles"]);
    for role in ["put", "work", "read", "admin"] {
        let login = format!(
            "DO $$BEGIN CREATE ROLE page_{role} LOGIN; EXCEPTION WHEN duplicate_object
             OR unique_violation THEN NULL; END$$; GRANT gristmill_{role} TO page_{role}"
        );
        database.psql(&login).unwrap();
    }
    database
}

/// A database with nothing in it.
fn empty() -> Database {
    Server::shared().unwrap().database("nothing", |_| Ok(())).unwrap()
}

// ---- docs/sql.md -----------------------------------------------------------

/// One statement as it is typed, and what follows it.
struct Step {
    typed: Vec<String>,
    printed: Vec<String>,
}

/// The blocks of transcripts.
fn transcripts(markdown: &str) -> Vec<Vec<Step>> {
    let mut blocks: Vec<Vec<Step>> = Vec::new();
    let mut inside = false;
    for line in markdown.lines() {
        match line {
            "```psql" => {
                inside = true;
                blocks.push(Vec::new());
            }
            "```" => inside = false,
            _ if !inside => {}
            _ => {
                let block = blocks.last_mut().unwrap();
                if let Some(typed) = line.strip_prefix("shop=> ") {
                    block.push(Step { typed: vec![typed.to_owned()], printed: Vec::new() });
                } else if let Some(more) = line.strip_prefix("shop-> ") {
                    block.last_mut().unwrap().typed.push(more.to_owned());
                } else {
                    block.last_mut().unwrap().printed.push(line.to_owned());
                }
            }
        }
    }
    blocks
}

/// A line as it is compared: widths of columns are not part of it.
fn words(line: &str) -> String {
    if line.chars().all(|c| "-+".contains(c)) {
        return String::new();
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines(text: &[String]) -> Vec<String> {
    text.iter().map(|line| words(line)).filter(|line| !line.is_empty()).collect()
}

/// Who says a statement of the page: a login with the one role that may. What is
/// not the queue's is said by the database's owner.
fn speaker(statement: &str) -> String {
    let names =
        |list: &str| list.split(' ').any(|name| statement.contains(&format!("gristmill.{name}(")));
    let role = if names("enqueue enqueue_many wake result") {
        "put"
    } else if names(
        "claim complete complete_many error retry fail release extend checkpoint progress \
         requeue_expired maintain",
    ) {
        "work"
    } else if names("stats schedules")
        || (statement.contains("gristmill.tasks") && !statement.contains("session_user"))
    {
        "read"
    } else if statement.contains("gristmill.") {
        "admin"
    } else {
        return "RESET SESSION AUTHORIZATION;\n".to_owned();
    };
    format!("SET SESSION AUTHORIZATION page_{role};\n")
}

/// Types a block into one psql session; what each statement prints.
fn type_in(url: &str, block: &[Step]) -> Vec<Vec<String>> {
    let mut psql = Command::new("psql")
        .args(["-X", "-q", "-d", url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Errors in their place among the answers, without the lines behind them.
    let mut script = String::from("\\set SHOW_CONTEXT never\n");
    for step in block {
        let typed = step.typed.join("\n");
        script += &speaker(&typed);
        script += &typed;
        script += "\n\\if :ERROR\n\\echo ERROR: :LAST_ERROR_MESSAGE\n\\endif\n\\echo ==end==\n";
    }
    psql.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let parts = printed.split("==end==\n").map(|part| part.lines().map(str::to_owned).collect());
    parts.take(block.len()).collect()
}

fn sql_md() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("docs/sql.md")).unwrap()
}

#[test]
fn the_transcripts_of_the_sql_page_say_what_happens() {
    let database = with_roles();
    let blocks = transcripts(&sql_md());
    assert!(blocks.len() >= 12, "the page shows {} transcripts", blocks.len());
    for block in blocks {
        for (step, printed) in block.iter().zip(type_in(&database.url(), &block)) {
            assert_eq!(lines(&printed), lines(&step.printed), "{}", step.typed.join("\n"));
        }
    }
}

#[test]
fn the_sql_page_names_every_function_for_clients() {
    let database = migrated();
    // Functions of the inside name their arguments p_something.
    let surface = database
        .psql(
            "SELECT DISTINCT p.proname FROM pg_proc p
              WHERE p.pronamespace = 'gristmill'::regnamespace AND p.prosecdef
                AND p.prorettype <> 'trigger'::regtype
                AND (p.proargnames[1] NOT LIKE 'p\\_%' OR p.pronargs = 0) ORDER BY 1",
        )
        .unwrap();
    let surface: BTreeSet<&str> = surface.lines().collect();
    for name in [
        "enqueue",
        "enqueue_many",
        "claim",
        "complete",
        "complete_many",
        "maintain",
        "add_schedule",
        "error",
        "retry",
        "fail",
        "release",
        "extend",
        "cancel",
        "requeue_expired",
        "retry_failed",
        "resolve",
        "stats",
    ] {
        assert!(surface.contains(name), "{name} is missing: {surface:?}");
    }
    let page = sql_md();
    for name in surface {
        assert!(page.contains(&format!("`{name}(")), "docs/sql.md says nothing of {name}");
        assert!(page.contains(&format!("gristmill.{name}(")), "docs/sql.md never calls {name}");
    }
}

// ---- migrate, doctor, copy -------------------------------------------------

#[test]
fn migrate_makes_the_schema_once_and_prints_it_without_a_server() {
    let place = Place::new();
    let database = empty();
    let url = database.url();
    let first = place.json(&["--store", &url, "migrate"]);
    assert_eq!(first["from"], 0);
    assert!(first["to"].as_u64().unwrap() > 0);
    let again = place.json(&["--store", &url, "migrate"]);
    assert_eq!((&again["from"], &again["to"]), (&first["to"], &first["to"]));

    let script =
        place.ok(&["--store", "postgres://nowhere.invalid/db?schema=mill", "migrate", "--print"]);
    assert!(script.contains("CREATE TABLE mill.task") && !script.contains("gristmill.task"));
}

#[test]
fn roles_are_made_or_shown_to_who_can_make_them() {
    let place = Place::new();
    let database = empty();
    let and = if database.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{and}schema=mill", database.url());
    let script = place.ok(&["--store", &url, "migrate", "--roles", "--print"]);
    assert!(script.contains("TO mill_put") && !script.contains("gristmill"), "{script}");
    let made = place.json(&["--store", &url, "migrate", "--roles"]);
    assert_eq!((&made["from"], &made["roles"]), (&json!(0), &json!(true)));
    place.write("roles.sql", script);
    let run = Command::new("psql")
        .args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", &database.url(), "-f"])
        .arg(place.path("roles.sql"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let may =
        "SELECT has_function_privilege('mill_work', 'mill.complete(bigint, uuid, jsonb)', 'EXECUTE'),
                      has_function_privilege('mill_put', 'mill.complete(bigint, uuid, jsonb)', 'EXECUTE')";
    assert_eq!(database.psql(may).unwrap(), "t|f");
    let other = place.run(&["--store", "sqlite://x.db", "migrate", "--roles"]);
    assert!(other.code != 0 && other.stderr.contains("PostgreSQL"), "{}", other.stderr);
}

#[test]
fn the_printed_schema_is_the_one_that_migrate_makes() {
    let place = Place::new();
    let database = empty();
    place.write("schema.sql", place.ok(&["--store", &database.url(), "migrate", "--print"]));
    let run = Command::new("psql")
        .args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", &database.url(), "-f"])
        .arg(place.path("schema.sql"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let again = place.json(&["--store", &database.url(), "migrate"]);
    assert_eq!(again["from"], again["to"], "nothing is left to do");
    assert_eq!(place.json(&["--store", &database.url(), "doctor"])["sound"], true);
}

#[test]
fn tasks_are_copied_to_postgres_and_back() {
    let place = Place::with(&[&["emails", "max_attempts=1"]]);
    for key in ["a", "b", "c"] {
        place.ok(&["put", "emails", "{\"n\":1}", "--key", key, "--source", "web"]);
    }
    place.ok(&["work", "--exec", "echo no such host >&2; exit 1", "--drain", "--batch", "1"]);
    place.ok(&["put", "emails", "2", "--key", "a", "--delay", "1h"]);
    let database = empty();
    let (sqlite, postgres) = ("sqlite://gristmill.db", database.url());
    let there = place.json(&["copy", "--from", sqlite, "--to", &postgres]);
    assert_eq!((&there["imported"], &there["left"]), (&json!(4), &json!(0)));
    let again = place.json(&["copy", "--from", sqlite, "--to", &postgres]);
    assert_eq!((&again["imported"], &again["already"]), (&json!(0), &json!(4)));
    let back = place.json(&["copy", "--from", &postgres, "--to", "sqlite://back.db"]);
    assert_eq!((&back["imported"], &back["left"]), (&json!(4), &json!(0)));
    // What went there and back is what it was, but for its number.
    let shown = |store: &str| {
        let tasks = place.json(&["list", "--store", store]);
        let mut tasks = tasks.as_array().unwrap().clone();
        for task in &mut tasks {
            task.as_object_mut().unwrap().remove("id");
        }
        tasks
    };
    assert_eq!(shown("sqlite://back.db"), shown(sqlite));
}

#[test]
fn doctor_names_what_somebody_did_to_the_schema() {
    let place = Place::new();
    let database = migrated();
    let url = database.url();
    let codes = || {
        let answer = place.run(&["--store", &url, "doctor", "--json"]);
        let answer: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        let findings = answer["findings"].as_array().unwrap().clone();
        let code = |finding: &serde_json::Value| finding["code"].as_str().unwrap().to_owned();
        (findings.iter().map(code).collect::<Vec<_>>(), findings)
    };
    assert_eq!(codes().0, Vec::<String>::new());

    database.psql("DROP INDEX gristmill.task_pick").unwrap();
    let (found, findings) = codes();
    assert_eq!(found, ["missing_index"]);
    let remedy = findings[0]["remedy"].as_str().unwrap();
    let statement = remedy.strip_prefix("make it again: ").unwrap();
    database.psql(statement).unwrap();
    assert_eq!(codes().0, Vec::<String>::new(), "the remedy cures");

    database
        .psql(
            "CREATE OR REPLACE FUNCTION gristmill.wake(queue text) RETURNS void LANGUAGE sql AS ''",
        )
        .unwrap();
    database.psql("ALTER TABLE gristmill.task SET (autovacuum_vacuum_threshold = 9)").unwrap();
    assert_eq!(codes().0, ["schema_drift", "storage_settings"]);
    database
        .psql(
            "ALTER FUNCTION gristmill.claim SECURITY INVOKER; DROP VIEW gristmill.tasks;
             DROP TRIGGER settle_at_commit ON gristmill.settling",
        )
        .unwrap();
    let drift = "schema_drift";
    assert_eq!(codes().0, [drift, drift, drift, drift, "storage_settings"]);
    let cured = place.json(&["--store", &url, "migrate"]);
    assert_eq!(cured["restored"], json!(["claim", "wake", "settling.settle_at_commit", "tasks"]));
    assert_eq!(codes().0, ["storage_settings"], "the remedy cures");
}

#[test]
fn doctor_names_dropped_subjects_and_unsafe_settings() {
    let place = Place::new();
    let database = migrated();
    let url = database.url();
    database.psql("CREATE TABLE item (id integer PRIMARY KEY)").unwrap();
    place.ok(&["--store", &url, "queue", "add", "q", "bind.table=item", "bind.column=id"]);
    database.psql("DROP TABLE item").unwrap();
    let set = format!("ALTER DATABASE \"{}\" SET synchronous_commit = off", database.name());
    database.psql(&set).unwrap();
    let answer = place.run(&["--store", &url, "doctor"]);
    assert_eq!(answer.code, 5);
    assert!(answer.stdout.contains("synchronous_commit is off"), "{}", answer.stdout);
    let gone = "queue 'q' is bound to table item, which does not exist";
    assert!(answer.stdout.contains(gone), "{}", answer.stdout);
}
