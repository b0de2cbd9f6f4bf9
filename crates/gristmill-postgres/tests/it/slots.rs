//! Slots under many claimers in several processes: never twice, never too
//! many, and a killed claimer's are free after its lease.
//!
//! A child is this test binary again. It writes a line when a claim is
//! answered and one before it settles, so that the parent knows for certain
//! when a slot was held.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_core::{ClaimRequest, NewTask, SettingsPatch, Store};
use gristmill_postgres::PostgresStore;

use crate::support::{
    asking, claim, database_within, declare, done, name, put, stats, store, task,
};

const SLOTS: u32 = 5;
const TASKS: u64 = 200;
const PROCESSES: usize = 4;
const CLAIMERS: usize = 4;
/// So many claimers of one process keep a claim until they are killed.
const KEEPERS: usize = 2;
const LEASE: Duration = Duration::from_secs(3);

/// The clock that the server has as well: it is on this machine.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of the test below, started by it"]
async fn child() {
    let Ok(folder) = std::env::var("GRISTMILL_SLOTS_FOLDER") else { return };
    let folder = PathBuf::from(folder);
    let keepers = if std::env::var_os("GRISTMILL_SLOTS_KEEP").is_some() { KEEPERS } else { 0 };
    let log = File::create(folder.join(format!("{}.log", std::process::id()))).unwrap();
    let log = Arc::new(log);
    let store = store(&std::fs::read_to_string(folder.join("url")).unwrap()).await;
    let claimers = (0..CLAIMERS).map(|claimer| {
        let (store, log) = (store.clone(), log.clone());
        tokio::spawn(async move { work(&store, &log, claimer < keepers).await })
    });
    for claimer in claimers.collect::<Vec<_>>() {
        claimer.await.unwrap();
    }
}

/// Claims and settles until nothing is left. A keeper stops at its third claim.
async fn work(store: &PostgresStore, mut log: &File, keeps: bool) {
    for taken_so_far in 1.. {
        let (taken, sent) = loop {
            let (mark, sent) = (store.mark(), now());
            let request = ClaimRequest { lease: Some(LEASE), ..asking("q", 4) };
            let taken = store.claim(request).await.unwrap();
            if !taken.tasks.is_empty() {
                break (taken, sent);
            }
            if stats(store, "q").await.total() == 0 {
                return;
            }
            // Whoever settles wakes; a killed one's lease ends in silence.
            store.wait(&[name("q")], mark, Duration::from_secs(1)).await.unwrap();
        };
        assert_eq!(taken.tasks.len(), 1, "one at a time");
        let (id, claims) = (taken.tasks[0].id, taken.tasks[0].claims);
        let slot = taken.tasks[0].slot.expect("a slot");
        // One write a line: lines of all claimers do not mix.
        log.write_all(format!("took {id} {claims} {slot} {sent} {}\n", now()).as_bytes()).unwrap();
        if keeps && taken_so_far == 3 {
            println!("keeps");
            std::future::pending::<()>().await;
        }
        // It is held for one more trip to the server.
        stats(store, "q").await;
        log.write_all(format!("ends {id} {claims} {}\n", now()).as_bytes()).unwrap();
        done(store, &taken).await;
    }
}

/// A child that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(folder: &Path, keeps: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "slots::child", "--ignored", "--nocapture"])
            .env("GRISTMILL_SLOTS_FOLDER", folder)
            .stdin(Stdio::null());
        if keeps {
            command.env("GRISTMILL_SLOTS_KEEP", "yes").stdout(Stdio::piped());
        } else {
            command.stdout(Stdio::null());
        }
        Process(command.spawn().unwrap())
    }

    /// Waits until all its keepers hold a slot, and kills it.
    fn kill_when_it_keeps(mut self) -> u32 {
        let said = BufReader::new(self.0.stdout.take().unwrap());
        let keeps = said.lines().filter(|line| line.as_ref().unwrap().contains("keeps"));
        assert_eq!(keeps.take(KEEPERS).count(), KEEPERS, "it ended before");
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        self.0.id()
    }
}

/// A slot that was certainly held, from then until then. The lease begins
/// after it was asked for, so it lasts at least from there.
#[derive(Debug, Clone, Copy)]
struct Held {
    process: u32,
    slot: u32,
    from: u128,
    until: u128,
    settled: bool,
}

fn held(folder: &Path) -> Vec<Held> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(process) = path.to_str().unwrap().strip_suffix(".log") else { continue };
        let process = Path::new(process).file_name().unwrap().to_str().unwrap().parse().unwrap();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let (what, numbers) = line.split_once(' ').unwrap();
            let numbers: Vec<u128> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
            let run = (numbers[0], numbers[1]);
            if what == "took" {
                let slot = u32::try_from(numbers[2]).unwrap();
                let until = numbers[3] + LEASE.as_micros();
                all.insert(run, Held { process, slot, from: numbers[4], until, settled: false });
            } else {
                let held = all.get_mut(&run).unwrap();
                held.until = held.until.min(numbers[2]);
                held.settled = true;
            }
        }
    }
    all.into_values().collect()
}

/// Sixteen claimers in four processes on one group with five slots. One
/// process is killed while it holds two.
#[tokio::test(flavor = "multi_thread")]
async fn live_slots_never_repeat_and_a_killed_claimers_is_free_after_its_lease() {
    let database = database_within().await;
    let main = store(&database.url()).await;
    let settings = SettingsPatch {
        slots: Some(Some(SLOTS)),
        max_attempts: Some(None),
        ..SettingsPatch::default()
    };
    declare(&main, "q", settings).await;
    let grouped = |n: u64| NewTask { group: Some("g".to_owned()), ..task(&n.to_string()) };
    put(&main, "q", (0..TASKS).map(grouped).collect()).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("url"), database.url()).unwrap();

    let victim = Process::start(folder.path(), true);
    let others: Vec<_> = (1..PROCESSES).map(|_| Process::start(folder.path(), false)).collect();
    let running = tokio::task::spawn_blocking(move || {
        let victim = victim.kill_when_it_keeps();
        for mut other in others {
            assert!(other.0.wait().unwrap().success(), "a claimer found something wrong");
        }
        victim
    });
    let victim = tokio::time::timeout(Duration::from_secs(100), running).await.expect("an end");
    let victim = victim.unwrap();

    let mut held = held(folder.path());
    held.sort_by_key(|held| (held.slot, held.from));
    assert!(held.iter().all(|held| held.slot < SLOTS), "{held:#?}");
    for pair in held.windows(2) {
        let apart = pair[0].slot != pair[1].slot || pair[0].until <= pair[1].from;
        assert!(apart, "one slot, held by two: {pair:#?}");
    }
    let kept = held.iter().filter(|held| held.process == victim && !held.settled).count();
    assert!(kept >= KEEPERS, "it was killed while it held some: {kept}");
    let processes: BTreeSet<u32> = held.iter().map(|held| held.process).collect();
    assert_eq!(processes.len(), PROCESSES, "all of them had some");
    let counters = stats(&main, "q").await.counters;
    assert_eq!(counters.done, TASKS, "the killed one's were done by others");
    assert!(counters.expired >= KEEPERS as u64, "{counters:?}");

    // All slots are free again, those of the killed one too.
    put(&main, "q", (0..=u64::from(SLOTS)).map(grouped).collect()).await;
    let mut slots = BTreeSet::new();
    for _ in 0..SLOTS {
        slots.insert(claim(&main, "q", 1).await.tasks[0].slot.unwrap());
    }
    assert_eq!(slots, (0..SLOTS).collect());
    assert!(claim(&main, "q", 1).await.tasks.is_empty(), "and no more than there are");
}
