//! Workers of other languages with their drivers, as services run them: with the
//! rights of a role, past the end of a lease, and to a clean end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::kitchen::Kitchen;

/// Runs a program; none, said aloud, when it is not here or fails to install.
fn tried(folder: &Path, program: &str, words: &[&str]) -> Option<Output> {
    match Command::new(program).args(words).current_dir(folder).output() {
        Ok(output) if output.status.success() => Some(output),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            println!("NOT RUN: {program} {words:?}: {said}");
            None
        }
        Err(error) => {
            println!("NOT RUN: {program}: {error}");
            None
        }
    }
}

/// A folder of this test's own, where a driver is installed.
fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("ingredient-match-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A kitchen and the URL of a login that may work on its lines, and nothing else.
fn kitchen_for(login: &str) -> (Kitchen, String) {
    let kitchen = Kitchen::new();
    kitchen.make_roles();
    kitchen.ask(&format!(
        "DO $$BEGIN CREATE ROLE {login} LOGIN PASSWORD 'secret'; EXCEPTION WHEN duplicate_object
             OR unique_violation THEN NULL; END$$;
         GRANT gristmill_work TO {login};
         GRANT SELECT ON ingredient_alias TO {login}; GRANT SELECT, UPDATE ON recipe_line TO {login}"
    ));
    let url = kitchen.tcp_url_of(login, "secret");
    (kitchen, url)
}

/// Works all off with a lease that is shorter than a line takes, then ends in the
/// middle of a batch.
fn a_worker_keeps_its_lease_and_ends_cleanly(program: &str, script: &str, folder: &Path) {
    let (kitchen, url) = kitchen_for("kitchen_worker");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let start = |words: &[&str]| {
        let mut command = Command::new(program);
        command.arg(&script).args(words).current_dir(folder).env("DATABASE_URL", &url);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    kitchen.put("scraper", &["1 egg", "2 eggs", "1 pinch of saffron"]);
    // Three lines in one claim, each longer than the lease.
    let worked = start(&["--drain", "--lease", "0.6", "--slow", "0.8"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&worked.stdout).into_owned();
    let errors = String::from_utf8_lossy(&worked.stderr);
    assert!(worked.status.success(), "{said}{errors}");
    assert_eq!(said.matches("(recorded)").count(), 2, "{said}{errors}");
    assert_eq!(
        kitchen.ask("SELECT state, claims, error FROM gristmill.tasks"),
        "failed|1|no ingredient is called 'saffron'",
        "nobody else had it meanwhile"
    );

    let lines: Vec<String> = (4..9).map(|n| format!("{n} eggs")).collect();
    kitchen.put("manual", &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let worker = start(&["--slow", "0.5"]);
    while kitchen.ask("SELECT processing FROM gristmill.stats()") != "5" {}
    let ended = Command::new("kill").args(["-TERM", &worker.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let worked = worker.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&worked.stdout).into_owned();
    assert!(worked.status.success(), "{said}{}", String::from_utf8_lossy(&worked.stderr));
    let done = said.matches("(recorded)").count();
    assert!(done < 5, "{said}");
    let left = format!("{}|0", 5 - done);
    assert_eq!(kitchen.ask("SELECT ready, processing FROM gristmill.stats()"), left, "{said}");
    assert_eq!(
        kitchen.ask("SELECT max(attempts) FROM gristmill.tasks WHERE state = 'pending'"),
        "0"
    );
}

#[test]
#[ignore = "installs a package: long form"]
fn long_a_worker_with_psycopg_keeps_its_lease_and_ends_cleanly() {
    let at = folder("python");
    let ready = tried(&at, "python3", &["-m", "venv", "venv"])
        .and_then(|_| tried(&at, "venv/bin/pip", &["install", "--quiet", "psycopg[binary]"]));
    if ready.is_some() {
        let python = at.join("venv/bin/python");
        a_worker_keeps_its_lease_and_ends_cleanly(
            python.to_str().unwrap(),
            "worker_psycopg.py",
            &at,
        );
    }
    std::fs::remove_dir_all(at).unwrap();
}

#[test]
#[ignore = "installs a package: long form"]
fn long_a_worker_with_node_postgres_keeps_its_lease_and_ends_cleanly() {
    let at = folder("node");
    if tried(&at, "npm", &["install", "--silent", "--no-fund", "--no-audit", "pg"]).is_some() {
        a_worker_keeps_its_lease_and_ends_cleanly("node", "worker.mjs", &at);
    }
    std::fs::remove_dir_all(at).unwrap();
}
