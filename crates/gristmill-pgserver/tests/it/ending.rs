//! A server ends when its users are gone, also when they were killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_pgserver::Server;

/// Set for the process that plays the killed test.
const VICTIM: &str = "GRISTMILL_PGSERVER_VICTIM";

/// Not a test by itself: the process that the next one kills.
#[test]
fn victim_that_waits_to_be_killed() {
    if env::var_os(VICTIM).is_none() {
        return;
    }
    let server = Server::private().unwrap();
    let data = server.psql("postgres", "SHOW data_directory").unwrap();
    println!("\ndata={data}");
    loop {
        thread::park();
    }
}

#[test]
fn a_killed_user_takes_its_private_server_along() {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "ending::victim_that_waits_to_be_killed", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let data = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("data=").map(str::to_owned))
        .unwrap();
    assert!(Path::new(&data).join("postmaster.pid").exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while Path::new(&data).exists() {
        assert!(Instant::now() < deadline, "{data} still stands");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_shared_server_is_one_for_all() {
    let one = Server::shared().unwrap();
    let two = thread::spawn(|| Server::shared().unwrap()).join().unwrap();
    assert_eq!(one.url(), two.url());
}

/// The same search that finds the programs here finds none elsewhere.
#[test]
fn a_missing_postgresql_is_one_clear_sentence() {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "ending::the_shared_server_is_one_for_all", "--nocapture"])
        // A program that answers with a folder that holds no server.
        .env("PG_CONFIG", "/bin/true")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    let sentence = "PostgreSQL's server is not installed: install the package `postgresql`";
    assert!(said.contains(sentence), "{said}");
}
