//! Workers as processes: rolling restarts, kills, and a task that takes its
//! process down.
//!
//! A child is this test binary again. It writes a line before and after each
//! task, and its exit is timed by the parent.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gristmill::port::{Backoff, Clock, ListRequest, SettingsPatch, SystemClock, TaskFilter};
use gristmill::worker::{Context, Worker};
use gristmill::{Mill, TaskState};
use rustix::process::{Pid, Signal, kill_process};

use crate::Mail;

/// How long a stopping worker lets its handlers finish.
const STOP_WITHIN: Duration = Duration::from_secs(10);

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of the tests below, started by them"]
async fn child() {
    let Ok(folder) = std::env::var("GRISTMILL_WORKER_FOLDER") else { return };
    let folder = PathBuf::from(folder);
    let mill = open(&folder).await;
    let log = folder.join(format!("{}.log", std::process::id()));
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    let log = std::sync::Arc::new(log);
    let mut term =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    // From here on it hears a signal.
    std::fs::write(folder.join(format!("{}.ready", std::process::id())), "").unwrap();
    let worker = Worker::new(&mill).processors(2).stop_within(STOP_WITHIN);
    let report = worker
        .handle(move |mail: Mail, context: Context| {
            let log = log.clone();
            async move {
                let (id, attempt) = (context.id, context.attempt);
                // One write a line: lines of both processors do not mix.
                (&*log).write_all(format!("start {id} {attempt} {}\n", now()).as_bytes()).unwrap();
                if mail.to == "poison" {
                    std::process::abort();
                }
                tokio::time::sleep(Duration::from_millis(2 + id.0.unsigned_abs() % 20)).await;
                (&*log).write_all(format!("end {id} {attempt} {}\n", now()).as_bytes()).unwrap();
                Ok::<(), String>(())
            }
        })
        .run(async move {
            term.recv().await;
        })
        .await
        .unwrap();
    assert_eq!(report.not_done, 0);
    mill.close().await.unwrap();
}

async fn open(folder: &Path) -> Mill {
    Mill::open(&format!("sqlite://{}", folder.join("test.db").display())).await.unwrap()
}

struct Site(tempfile::TempDir);

/// A child that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Site {
    async fn new(settings: impl FnOnce(&mut SettingsPatch)) -> (Self, Mill) {
        let site = Site(tempfile::tempdir().unwrap());
        let mill = open(site.0.path()).await;
        mill.declare::<Mail>().with(settings).await.unwrap();
        (site, mill)
    }

    fn start(&self) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker_processes::child", "--ignored", "--nocapture"])
            .env("GRISTMILL_WORKER_FOLDER", self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// Returns when a child hears signals.
    async fn hears(&self, child: &Process) {
        let ready = self.0.path().join(format!("{}.ready", child.0.id()));
        crate::until("it hears", async || ready.exists()).await;
    }

    /// What the children wrote: (process, what, id, attempt, when).
    fn lines(&self) -> Vec<(u32, String, i64, u32, u128)> {
        let mut lines = Vec::new();
        for entry in std::fs::read_dir(self.0.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "log") {
                continue;
            }
            let process: u32 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let parts: Vec<&str> = line.split(' ').collect();
                let number = |at: usize| parts[at].parse::<i64>().unwrap();
                let (attempt, at) = (number(2).unsigned_abs(), number(3).unsigned_abs());
                lines.push((
                    process,
                    parts[0].to_owned(),
                    number(1),
                    u32::try_from(attempt).unwrap(),
                    u128::from(at),
                ));
            }
        }
        lines
    }
}

fn terminate(child: &Process) {
    let pid = Pid::from_raw(i32::try_from(child.0.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// Waits for a child's end; says how long it took and whether it was well.
fn wait(child: &mut Process, limit: Duration) -> (Duration, bool) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            return (start.elapsed(), status.success());
        }
        assert!(start.elapsed() < limit, "it did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns when some more tasks are done: somebody is at work.
async fn gets_on(mill: &Mill) {
    let done = async || mill.inspect().queue("mails").await.unwrap().counters.done;
    let before = done().await;
    crate::until("more is done", async || done().await >= before + 40).await;
}

async fn until_empty(mill: &Mill, limit: Duration) {
    crate::within(limit, "nothing is left", async || {
        let stats = mill.inspect().queue("mails").await.unwrap();
        stats.total() == stats.failed
    })
    .await;
}

#[tokio::test]
async fn rolling_restarts_burn_no_attempt_and_repeat_no_task() {
    let (site, mill) = Site::new(|s| s.lease = Some(Duration::from_secs(10))).await;
    const TASKS: usize = 3_000;
    mill.put_all((0..TASKS).map(Mail::to)).run().await.unwrap();
    let mut children: Vec<Process> = (0..4).map(|_| site.start()).collect();
    for child in &children {
        site.hears(child).await;
    }
    for round in 0..20 {
        gets_on(&mill).await;
        let child = &mut children[round % 4];
        site.hears(child).await;
        terminate(child);
        let (took, well) = wait(child, STOP_WITHIN + Duration::from_secs(5));
        assert!(well && took < STOP_WITHIN, "{took:?}, {well}");
        *child = site.start();
    }
    until_empty(&mill, Duration::from_secs(60)).await;
    for child in &mut children {
        terminate(child);
        let (took, well) = wait(child, STOP_WITHIN + Duration::from_secs(5));
        assert!(well && took < STOP_WITHIN, "{took:?}, {well}");
    }
    let mut runs: HashMap<i64, u32> = HashMap::new();
    for (_, what, id, attempt, _) in site.lines() {
        assert_eq!(attempt, 1, "an attempt was burnt");
        *runs.entry(id).or_default() += u32::from(what == "end");
    }
    assert_eq!(runs.len(), TASKS);
    assert!(runs.values().all(|ends| *ends == 1), "a task ran again");
    let counters = mill.inspect().queue("mails").await.unwrap().counters;
    assert_eq!((counters.expired, counters.failed, counters.lease_lost), (0, 0, 0));
}

/// Looks at all leases again and again: how long the most overdue one was left
/// with a worker that may be dead.
async fn most_overdue(mill: Mill, mut over: tokio::sync::oneshot::Receiver<()>) -> Duration {
    let mut most = Duration::ZERO;
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    loop {
        tokio::select! {
            _ = &mut over => return most,
            _ = looks.tick() => {}
        }
        let filter = TaskFilter { state: Some(TaskState::Processing), ..TaskFilter::default() };
        let mut request = ListRequest { filter, limit: 1_000, ..ListRequest::default() };
        loop {
            let page = mill.inspect().list(request.clone()).await.unwrap();
            let now = SystemClock::default().now();
            for lease in page.tasks.iter().filter_map(|task| task.lease.as_ref()) {
                most = most.max(now.since(lease.until));
            }
            request.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn killed_workers_tasks_are_back_within_the_lease_and_a_second() {
    let (site, mill) = Site::new(|s| {
        s.lease = Some(Duration::from_secs(1));
        s.max_attempts = Some(None);
    })
    .await;
    const TASKS: usize = 2_000;
    mill.put_all((0..TASKS).map(Mail::to)).run().await.unwrap();
    let (over, ended) = tokio::sync::oneshot::channel();
    let watching = tokio::spawn(most_overdue(mill.clone(), ended));
    let mut children: Vec<Process> = (0..4).map(|_| site.start()).collect();
    for child in &children {
        site.hears(child).await;
    }
    for round in 0..20 {
        gets_on(&mill).await;
        let child = &mut children[round % 4];
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        *child = site.start();
    }
    until_empty(&mill, Duration::from_secs(90)).await;
    over.send(()).unwrap();
    for child in &mut children {
        terminate(child);
        assert!(wait(child, STOP_WITHIN + Duration::from_secs(5)).1);
    }
    let counters = mill.inspect().queue("mails").await.unwrap().counters;
    assert_eq!((counters.done, counters.failed), (TASKS as u64, 0));
    assert!(counters.expired > 0, "nobody was caught at work");
    let overdue = watching.await.unwrap();
    println!("{} leases ran out, the slowest was back {overdue:?} later", counters.expired);
    // A busy machine gets half a second more to do it.
    assert!(overdue < Duration::from_millis(1_500), "{overdue:?}");
}

#[tokio::test]
async fn a_poison_task_fails_with_a_reason_and_its_neighbours_finish() {
    let (site, mill) = Site::new(|s| {
        s.lease = Some(Duration::from_millis(300));
        s.max_attempts = Some(Some(3));
        let soon = Duration::from_millis(20);
        s.backoff = Some(Backoff { base: soon, cap: soon, jitter: false });
    })
    .await;
    mill.put_all(
        (0..100).map(|n| Mail::to(if n == 40 { "poison".to_owned() } else { n.to_string() })),
    )
    .run()
    .await
    .unwrap();
    let mut child = site.start();
    let mut deaths = 0;
    crate::within(Duration::from_secs(30), "all but one are done", async || {
        if child.0.try_wait().unwrap().is_some() {
            deaths += 1;
            child = site.start();
        }
        mill.store().sweep().await.unwrap();
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert!(stats.failed <= 1, "{stats:?}");
        stats.counters.done == 99 && stats.failed == 1
    })
    .await;
    site.hears(&child).await;
    terminate(&child);
    assert!(wait(&mut child, Duration::from_secs(10)).1);
    assert_eq!(deaths, 3);
    let failed = mill.inspect().failed(None, 2).await.unwrap();
    assert_eq!((failed.len(), failed[0].state, failed[0].attempts), (1, TaskState::Failed, 3));
    assert!(failed[0].error.as_deref().unwrap().contains("lease ran out"), "{failed:?}");
}
