//! Real processes on one server: killed at random, the server shot and started
//! again under them, their connections ended, its power cut.

use std::path::Path;
use std::sync::Arc;

use gristmill_conformance::crash::{self, KillPlan, Opening, Verdict};
use gristmill_core::Store;
use gristmill_pgserver::{Database, Server};
use gristmill_postgres::{Options, PostgresStore};

use crate::support::database;

/// The children find their server by a file in the run's folder.
pub(crate) const URL: &str = "url";

pub(crate) fn open(folder: &Path) -> Opening<'_> {
    Box::pin(async move {
        let url = std::fs::read_to_string(folder.join(URL)).expect("the parent wrote it");
        let store = PostgresStore::open(&url, Options::default()).await;
        Arc::new(store.expect("the database opens clean")) as Arc<dyn Store>
    })
}

/// Tells the children of a run in `folder` where the database is.
fn point(folder: &Path, url: &str) {
    let store = folder.join("store");
    std::fs::create_dir_all(&store).expect("a folder");
    std::fs::write(store.join(URL), url).expect("a file");
}

fn long() -> bool {
    std::env::var_os("GRISTMILL_LONG").is_some()
}

#[test]
#[ignore = "a child of the tests below"]
fn child() {
    crash::child(open);
}

fn plan(kills: usize) -> KillPlan {
    KillPlan { child: "crash::child", kills, producers: 2, workers: 3 }
}

fn assert_sound(verdict: &Verdict, strikes: usize) {
    println!("{:?}", verdict.tally);
    assert!(verdict.faults.is_empty(), "{:#?}", verdict.faults);
    // A run that saw too little proves nothing.
    let seen = verdict.tally;
    assert!(seen.puts > strikes * 10, "{seen:?}");
    assert!(seen.settled > strikes, "{seen:?}");
}

#[test]
fn crash_killed_processes_lose_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = database();
    point(folder.path(), &database.url());
    let kills = if long() { 300 } else { 25 };
    let verdict = crash::kills(&plan(kills), folder.path(), open);
    assert_sound(&verdict, kills);
    assert!(verdict.tally.redelivered > kills / 5, "{:?}", verdict.tally);
}

#[test]
fn crash_ended_connections_lose_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = database();
    point(folder.path(), &database.url());
    let strikes = if long() { 200 } else { 20 };
    let verdict = crash::strikes(&plan(strikes), folder.path(), open, |_| {
        end_some_connections(&database);
    });
    assert_sound(&verdict, strikes);
}

/// Ends about half of the connections to a database, whatever they are at.
fn end_some_connections(database: &Database) {
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5";
    database.psql(end).expect("ended");
}

#[test]
fn crash_a_server_that_is_shot_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::private().expect("PostgreSQL runs");
    point(folder.path(), &server.url());
    let strikes = if long() { 40 } else { 5 };
    let verdict = crash::strikes(&plan(strikes), folder.path(), open, |round| {
        // As a machine does: stopped in the middle, or its first process gone.
        if round % 2 == 0 {
            server.restart_immediately().expect("it comes back");
        } else {
            server.kill().expect("it ran");
            server.start().expect("it comes back");
        }
    });
    assert_sound(&verdict, strikes);
}
