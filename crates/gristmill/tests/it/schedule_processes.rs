//! Three schedulers as real processes on one file, killed and stopped at
//! random: each instant has its one task.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::port::ListRequest;
use gristmill::schedule::{FIRE_HEADER, Missed, Scheduler};
use gristmill::{Mill, Timestamp};
use rustix::process::{Pid, Signal, kill_process};

use crate::Mail;

const STORE: &str = "GRISTMILL_SCHEDULER_STORE";

/// A child of the test below; nothing without its parent.
#[tokio::test]
#[ignore = "started by its parent"]
async fn child() {
    let Ok(url) = std::env::var(STORE) else { return };
    let mill = Mill::open(&url).await.unwrap();
    Scheduler::new(&mill).run(std::future::pending()).await.unwrap();
}

fn start(url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "schedule_processes::child", "--ignored", "--test-threads=1"])
        .env(STORE, url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Children that do not outlive a failing test.
struct Children(Vec<Child>);

impl Children {
    fn signal(&self, which: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.0[which]), signal).unwrap();
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Even enough to kill by.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Kills, stops and continues children for this long. Returns how many were
/// killed and how many stopped.
fn torment(children: &mut Children, url: &str, long: Duration) -> (u32, u32) {
    let seed = std::process::id();
    let mut dice = Dice(u64::from(seed) << 20 | 1);
    let begun = Instant::now();
    let (mut killed, mut stopped) = (0, 0);
    while begun.elapsed() < long {
        let time = |millis| std::thread::sleep(Duration::from_millis(millis));
        time(50 + dice.below(250));
        let victim = dice.below(3) as usize;
        if dice.below(2) == 0 {
            children.0[victim].kill().unwrap();
            children.0[victim].wait().unwrap();
            children.0[victim] = start(url);
            killed += 1;
        } else {
            children.signal(victim, Signal::STOP);
            time(dice.below(1_500));
            children.signal(victim, Signal::CONT);
            stopped += 1;
        }
    }
    (killed, stopped)
}

async fn instants(mill: &Mill) -> Vec<Timestamp> {
    let request = ListRequest { limit: 1_000, ..ListRequest::default() };
    let tasks = mill.inspect().list(request).await.unwrap().tasks;
    tasks.iter().map(|task| task.headers[FIRE_HEADER].parse().unwrap()).collect()
}

async fn open(folder: &Path) -> (Mill, String) {
    let url = format!("sqlite://{}", folder.join("test.db").display());
    (Mill::open(&url).await.unwrap(), url)
}

#[tokio::test]
async fn an_instant_has_one_task_whoever_dies() {
    let folder = tempfile::tempdir().unwrap();
    let (mill, url) = open(folder.path()).await;
    mill.declare::<Mail>().await.unwrap();
    let every = mill.schedule("s").every(Duration::from_secs(1)).missed(Missed::All);
    every.puts(Mail::to("a")).await.unwrap();
    let mut children = Children((0..3).map(|_| start(&url)).collect());
    let (killed, stopped) = torment(&mut children, &url, Duration::from_secs(10));
    assert!(killed + stopped >= 5, "{killed} killed, {stopped} stopped");
    let by_children = instants(&mill).await.len();
    assert!(by_children >= 5, "{by_children} fires: the children did something");
    drop(children);
    // Whatever they left is made up, and nothing is made twice.
    let mut last = Scheduler::new(&mill);
    last.run_due().await.unwrap();
    let instants = instants(&mill).await;
    for pair in instants.windows(2) {
        assert_eq!(pair[1].since(pair[0]), Duration::from_secs(1), "none is missing or doubled");
    }
}
