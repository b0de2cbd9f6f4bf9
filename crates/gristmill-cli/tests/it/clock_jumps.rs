//! Whole processes whose wall clock jumps under them, by libfaketime: an hour both
//! ways, and a year ahead for three seconds. Without that library the test says so
//! and passes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gristmill_pgserver::Server;
use rustix::process::Signal;

use crate::place::{Place, Running, eventually};

const LEASE: Duration = Duration::from_secs(2);
const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// Notes each run of a task, and runs for as long as the payload says.
const HANDLER: &str = r#"read long
echo "start $GRISTMILL_TASK_ID $GRISTMILL_TASK_QUEUE" >> runs
sleep $long
echo "end $GRISTMILL_TASK_ID $GRISTMILL_TASK_QUEUE" >> runs"#;

const CONFIG: &str = "
queues:
  - {name: tasks, settings: {lease: 2s}, exec: ./handler, processors: 3}
  - {name: ticks, settings: {lease: 2s}, exec: ./handler}
  - {name: waiting, settings: {lease: 2s}}
schedules:
  - {name: tick, queue: ticks, every: 1s, payload: 0}
";

/// Where the packages put the library that programs are given.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    let mut found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    found.find(|path| path.exists())
}

/// A place whose programs have a wall clock of the test's own.
struct Off {
    place: Place,
    library: PathBuf,
    url: String,
}

impl Off {
    fn new(library: PathBuf, url: &str) -> Self {
        let off = Off { place: Place::new(), library, url: url.to_owned() };
        off.place.write("handler", format!("#!/bin/sh\n{HANDLER}\n"));
        let mut can_run = std::fs::metadata(off.place.path("handler")).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut can_run, 0o700);
        std::fs::set_permissions(off.place.path("handler"), can_run).unwrap();
        off.place.write("runs", "");
        off.place.write("gristmill.yaml", CONFIG);
        off.jump(0);
        off
    }

    /// From now on the wall clock is so many seconds off.
    fn jump(&self, seconds: i64) {
        self.place.write("clock.new", format!("{seconds:+}"));
        std::fs::rename(self.place.path("clock.new"), self.place.path("clock")).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        command
            .env("GRISTMILL_STORE", &self.url)
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", self.place.path("clock"))
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1");
        command
    }

    fn start(&self, args: &[&str]) -> Running {
        Running::of(&mut self.command(args))
    }

    fn run(&self, args: &[&str]) -> (bool, String) {
        let output = self.command(args).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    fn put(&self, queue: &str, payload: &str) {
        let (put, said) = self.run(&["put", queue, payload]);
        assert!(put, "{said}");
    }

    /// How often each task was begun and ended, by id; of one queue.
    fn runs(&self, queue: &str) -> BTreeMap<u64, (u32, u32)> {
        let mut runs: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        for line in std::fs::read_to_string(self.place.path("runs")).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if words.len() == 3 && words[2] == queue {
                let (begun, ended) = runs.entry(words[1].parse().unwrap()).or_default();
                *(if words[0] == "start" { begun } else { ended }) += 1;
            }
        }
        runs
    }

    fn ended(&self, queue: &str) -> usize {
        self.runs(queue).values().filter(|(_, ended)| *ended > 0).count()
    }
}

/// Goes through the jumps of a clock that is the store's or only its client's.
fn go_through(library: &Path, url: &str, whose: &str) {
    let off = Off::new(library.to_owned(), url);
    let mut up = off.start(&["up"]);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    let beside = off.start(&["work", "tasks", "--processors", "2", "--exec", "./handler"]);
    let mut put = 0;
    for jump in [0, HOUR, 0, -HOUR, 0, YEAR, 0] {
        // One runs through the jump, longer than its lease.
        off.put("tasks", "5");
        put += 1;
        eventually("it runs", || off.runs("tasks").len() == put);
        off.jump(jump);
        let (jumped, ticks) = (Instant::now(), off.ended("ticks"));
        off.put("tasks", "0");
        put += 1;
        eventually("the quick one ends", || off.runs("tasks").len() == put);
        eventually("the schedule goes on", || off.ended("ticks") > ticks + 1);
        assert!(
            jumped.elapsed() < Duration::from_secs(5),
            "{whose} {jump}: {:?}",
            jumped.elapsed()
        );
        if jump == YEAR {
            off.put("waiting", "1");
            std::thread::sleep(Duration::from_secs(3).saturating_sub(jumped.elapsed()));
        } else {
            eventually("all end", || off.ended("tasks") == put);
        }
    }
    eventually("all end", || off.ended("tasks") == put);
    // One dies with its worker.
    let dying = off.start(&["work", "waiting", "--exec", "sleep 1000"]);
    let (code, told) = off.run(&["doctor"]);
    if whose == "the store's" {
        assert!(!code && told.contains("ahead of the clock"), "{told}");
    }
    off.put("waiting", "1");
    eventually("it runs", || {
        off.run(&["stats", "waiting", "--json"]).1.contains("\"processing\":1")
    });
    let (code, told) = off.run(&["doctor"]);
    if whose == "the store's" {
        assert!(!code && told.contains("ahead of the clock"), "also behind others: {told}");
    }
    off.jump(HOUR);
    dying.kill();
    let died = Instant::now();
    let next = off.start(&["work", "waiting", "--exec", "./handler"]);
    eventually("the orphan is back", || off.ended("waiting") > 0);
    println!("{url}: the orphan was back after {:?}", died.elapsed());
    assert!(died.elapsed() < LEASE + Duration::from_secs(6), "{:?}", died.elapsed());
    for running in [up, beside, next] {
        running.signal(Signal::TERM);
        let (code, _, said) = running.end();
        assert_eq!(code, 0, "{said}");
    }
    let runs = off.runs("tasks");
    assert!(runs.values().all(|times| *times == (1, 1)), "each ran once: {runs:?}");
    assert_eq!(runs.len(), put, "and none is lost");
    println!("{url}: {put} tasks, {} fires", off.ended("ticks"));
}

#[test]
#[ignore = "takes a minute: long form"]
fn long_jumps_of_the_machine_s_clock_harm_nobody() {
    let Some(library) = library() else {
        println!("NOT RUN: libfaketime is missing: install the package faketime");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for store in ["sqlite", "files"] {
        let url = format!("{store}://{}", folder.path().join(store).display());
        go_through(&library, &url, "the store's");
    }
}

#[test]
#[ignore = "takes half a minute: long form"]
fn long_jumps_of_a_client_s_clock_change_nothing_on_postgres() {
    let Some(library) = library() else {
        println!("NOT RUN: libfaketime is missing: install the package faketime");
        return;
    };
    let database = Server::shared().unwrap().database("clocks", |_| Ok(())).unwrap();
    go_through(&library, &database.url(), "the client's");
}
