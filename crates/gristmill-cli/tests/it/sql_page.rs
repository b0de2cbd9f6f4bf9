//! The page of SQL functions in other languages: with psycopg and node-postgres,
//! whose parameters have no types, and with each role.

use std::path::Path;
use std::process::{Command, Output};

use crate::place::Place;
use crate::postgres::with_roles;

/// Runs a program; none, said aloud, when it is not here or fails to install.
fn tried(folder: &Path, program: &str, words: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(words).current_dir(folder).output();
    match output {
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

/// Runs a script of this folder on a database and the page.
fn says_the_page(folder: &Path, program: &str, script: &str) {
    let database = with_roles();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (script, page) = (here.join("tests/it").join(script), here.join("../../docs/sql.md"));
    let url = database.url();
    let words = [script.to_str().unwrap(), &url, page.to_str().unwrap()];
    let said = Command::new(program).args(words).current_dir(folder).output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{text}{errors}");
    let count: u32 = text.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 50, "{text}");
}

#[test]
#[ignore = "installs a package: long form"]
fn long_psycopg_says_the_sql_page_on_postgres() {
    let place = Place::new();
    let at = place.path("");
    let ready = tried(&at, "python3", &["-m", "venv", "venv"])
        .and_then(|_| tried(&at, "venv/bin/pip", &["install", "--quiet", "psycopg[binary]"]));
    if ready.is_some() {
        says_the_page(&at, "venv/bin/python", "sql_page.py");
    }
}

#[test]
#[ignore = "installs a package: long form"]
fn long_node_postgres_says_the_sql_page_on_postgres() {
    let place = Place::new();
    let at = place.path("");
    if tried(&at, "npm", &["install", "--silent", "--no-fund", "--no-audit", "pg"]).is_some() {
        says_the_page(&at, "node", "sql_page.mjs");
    }
}
