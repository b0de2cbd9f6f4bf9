//! The store is locked by another process for a while: workers and schedulers
//! wait, say so, and go on by themselves.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::schedule::{FIRE_HEADER, Missed, Scheduler};
use gristmill::sqlite::rusqlite::Connection;
use gristmill::worker::{Context, Worker};
use gristmill::{Mill, Timestamp};
use tokio::sync::oneshot;

use crate::said::Said;
use crate::{Mail, within};

/// Locks a file until its input ends.
#[test]
#[ignore = "a child of the tests below"]
fn locker() {
    let Ok(file) = std::env::var("GRISTMILL_LOCK") else { return };
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("\nlocked");
    let _ = std::io::stdin().read_line(&mut String::new());
    connection.execute_batch("ROLLBACK").unwrap();
}

/// Starts a process that locks the file; returns when it has the lock.
fn lock(file: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "outage::locker", "--ignored", "--nocapture"])
        .env("GRISTMILL_LOCK", file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim_end() != "locked" {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it has no lock");
    }
    // Open to the end: its last words must not kill it.
    child.stdout = Some(said.into_inner());
    child
}

async fn away_for(seconds: u64) {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let mill = Mill::open(&format!("sqlite://{}", file.display())).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let fired = Arc::new(Mutex::new(Vec::<Timestamp>::new()));
    let seen = fired.clone();
    let worker = Worker::new(&mill)
        .handle(move |_: Mail, context: Context| {
            seen.lock().unwrap().push(context.headers()[FIRE_HEADER].parse().unwrap());
            async { Ok::<(), String>(()) }
        })
        .start()
        .await
        .unwrap();
    let every = mill.schedule("s").every(Duration::from_secs(1)).missed(Missed::All);
    let scheduler = Scheduler::new(&mill).schedule(every.puts(Mail::to("a")));
    let (stop, stopped) = oneshot::channel::<()>();
    let scheduling = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
    let runs = || fired.lock().unwrap().len();
    within(Duration::from_secs(10), "a first fire", async || runs() > 0).await;

    let path = file.clone();
    let mut locker = tokio::task::spawn_blocking(move || lock(&path)).await.unwrap();
    let locked = Instant::now();
    // Two seconds, and one more for a machine that is busy.
    let soon = Duration::from_secs(3);
    within(soon, "it is known", async || worker.stats().store_away.is_some()).await;
    println!("known {:?} after the lock", locked.elapsed());
    within(soon, "it is said", async || said.count("the store does not answer") == 1).await;
    let before = runs();
    let long = Duration::from_secs(seconds);
    let away = || worker.stats().store_away;
    within(long * 2, "it lasts", async || away().is_some_and(|away| away >= long)).await;
    // Waiting for it closes its input.
    let exited = tokio::task::spawn_blocking(move || locker.wait().unwrap()).await.unwrap();
    assert!(exited.success());

    let back = Instant::now();
    let later = Duration::from_secs(20);
    let missed = usize::try_from(seconds).unwrap() - 1;
    within(later, "what was missed is made up", async || runs() >= before + missed).await;
    println!("all made up {:?} after the lock was gone", back.elapsed());
    within(later, "it is said", async || said.count("the store answers again after") == 1).await;
    within(later, "it is known", async || worker.stats().store_away.is_none()).await;
    assert_eq!(said.count("the store does not answer"), 1, "worker and scheduler say it once");
    stop.send(()).unwrap();
    scheduling.await.unwrap().unwrap();
    let report = worker.stop().await.unwrap();
    assert_eq!((report.lease_lost, report.not_done), (0, 0));
    let mut fired = fired.lock().unwrap().clone();
    fired.sort();
    for pair in fired.windows(2) {
        assert_eq!(pair[1].since(pair[0]), Duration::from_secs(1), "none is missing or doubled");
    }
}

#[tokio::test]
async fn a_store_locked_by_another_process_is_waited_for() {
    away_for(5).await;
}

#[tokio::test]
#[ignore = "long: the store is away for 20 seconds"]
async fn long_a_store_locked_for_twenty_seconds_is_waited_for() {
    away_for(20).await;
}
