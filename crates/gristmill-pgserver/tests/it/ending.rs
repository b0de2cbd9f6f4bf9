//! A server ends when its users are gone, also when they were killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_pgserver::Server;
use rustix::process::{Pid, Signal, kill_process_group};

/// Set for the process that plays the killed test.
const VICTIM: &str = "GRISTMILL_PGSERVER_VICTIM";

/// Not a test by itself: the process that the next ones kill.
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

/// A test run with a group of its own, as a shell starts one.
fn victim() -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "ending::victim_that_waits_to_be_killed", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn kill_group(mut victim: Child) {
    kill_process_group(Pid::from_child(&victim), Signal::KILL).unwrap();
    victim.wait().unwrap();
}

/// Waits for what cannot be heard, only looked at.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what} did not come true");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The server's first process, by its own note.
fn first_process(data: &Path) -> Option<Pid> {
    let note = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
    Pid::from_raw(note.lines().next()?.trim().parse().ok()?)
}

fn assert_gone(data: &Path, server: Pid) {
    eventually("the folder is gone", || (!data.exists()).then_some(()));
    // One that nobody reaps has ended, too.
    let stat = format!("/proc/{}/stat", server.as_raw_nonzero());
    eventually("the server is gone", || {
        let said = std::fs::read_to_string(&stat).unwrap_or_default();
        (said.is_empty() || said.contains(") Z ")).then_some(())
    });
}

#[test]
fn a_killed_group_takes_its_server_along() {
    let mut victim = victim();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let data = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("data=").map(PathBuf::from))
        .unwrap();
    let server = first_process(&data).expect("it runs");
    kill_group(victim);
    assert_gone(&data, server);
}

/// Cut off in the middle of the start, when the server has just come up and
/// nobody has used it.
#[test]
fn a_group_that_is_killed_while_it_starts_a_server_takes_it_along() {
    let mine = Server::private().unwrap();
    let data = mine.psql("postgres", "SHOW data_directory").unwrap();
    let root = Path::new(&data).ancestors().nth(2).unwrap();
    let victim = victim();
    // A run's folder has its process's number in its name.
    let its = format!("-{}-0", victim.id());
    let data = eventually("it begins", || {
        let runs = root.read_dir().unwrap().flatten();
        runs.map(|run| run.path()).find(|run| run.is_dir() && run.to_string_lossy().ends_with(&its))
    })
    .join("data");
    let server = eventually("its server starts", || first_process(&data));
    kill_group(victim);
    assert_gone(&data, server);
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
