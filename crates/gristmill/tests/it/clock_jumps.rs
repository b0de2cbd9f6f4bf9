//! The wall clock jumps under running workers and a running schedule, on every
//! store: nobody who is alive loses a task, who died loses it in time, and the
//! schedule goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::files::FilesStore;
use gristmill::port::memory::{MemoryOptions, MemoryStore};
use gristmill::port::{
    Boot, ClaimRequest, Clock, ListRequest, ManualClock, QueueName, SystemClock, TaskFilter,
    Timestamp, Token, WorkerId,
};
use gristmill::postgres::PostgresStore;
use gristmill::schedule::Scheduler;
use gristmill::sqlite::SqliteStore;
use gristmill::worker::{Worker, WorkerHandle};
use gristmill::{Mill, TaskType};
use gristmill_pgserver::Database;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::within;

const LEASE: Duration = Duration::from_secs(2);
const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// The machine's clock, and how far the wall is off it.
#[derive(Debug, Default)]
struct Moved {
    machine: SystemClock,
    seconds: AtomicI64,
}

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        let off = self.seconds.load(Ordering::SeqCst);
        let by = Duration::from_secs(off.unsigned_abs());
        let now = self.machine.now();
        if off < 0 { now.before(by) } else { now.after(by) }
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }

    fn boot(&self) -> Option<Boot> {
        self.machine.boot()
    }
}

/// Runs until it is told to end.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Long {
    until: u32,
}

impl TaskType for Long {
    const QUEUE: &'static str = "long";
}

/// What the schedule puts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Tick;

impl TaskType for Tick {
    const QUEUE: &'static str = "ticks";
}

/// Claimed by somebody who died.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Orphan;

impl TaskType for Orphan {
    const QUEUE: &'static str = "orphans";
}

/// A store under two mills, as two processes have it; one where there is one.
struct Site {
    clock: Arc<Moved>,
    mills: Vec<Mill>,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

impl Site {
    async fn new(kind: &str) -> Self {
        let clock = Arc::new(Moved::default());
        let folder = tempfile::tempdir().unwrap();
        let database = match kind {
            "postgres" => Some(crate::postgres::database().await),
            _ => None,
        };
        let path = folder.path().join("store");
        let mut mills = Vec::new();
        for _ in 0..2 {
            let clock = clock.clone();
            mills.push(match (kind, &database) {
                ("sqlite", _) => {
                    let options = gristmill::sqlite::Options { clock, ..Default::default() };
                    Mill::over_sqlite(Arc::new(SqliteStore::open(&path, options).unwrap()))
                }
                ("files", _) => {
                    let options = gristmill::files::Options { clock, ..Default::default() };
                    Mill::over_files(Arc::new(FilesStore::open(&path, options).unwrap()))
                }
                (_, Some(database)) => {
                    let options =
                        gristmill::postgres::Options { clock: Some(clock), ..Default::default() };
                    let store = PostgresStore::open(&database.url(), options).await.unwrap();
                    Mill::over_postgres(Arc::new(store))
                }
                _ => Mill::over(Arc::new(MemoryStore::new(MemoryOptions {
                    clock,
                    ..MemoryOptions::default()
                }))),
            });
            if kind == "memory" {
                mills.push(mills[0].clone());
                break;
            }
        }
        let site = Site { clock, mills, _folder: folder, _database: database };
        for queue in [Long::QUEUE, Tick::QUEUE, Orphan::QUEUE] {
            site.mill().declare_queue(queue).lease(LEASE).await.unwrap();
        }
        site
    }

    fn mill(&self) -> &Mill {
        &self.mills[0]
    }

    /// Until when the long task is leased.
    async fn leased_until(&self) -> Option<Timestamp> {
        let queue = Some(QueueName::new(Long::QUEUE).unwrap());
        let filter = TaskFilter { queue, ..TaskFilter::default() };
        let request = ListRequest { filter, ..ListRequest::default() };
        let page = self.mill().store().list(request).await.unwrap();
        page.tasks.first().and_then(|task| task.lease.as_ref()).map(|lease| lease.until)
    }

    /// Waits until its lease has just been extended: so the next extension is as far
    /// away as it can be.
    async fn just_extended(&self) {
        let before = self.leased_until().await;
        within(LEASE, "it is extended", async || self.leased_until().await != before).await;
    }

    /// Somebody claims a task and dies; then a worker serves its queue.
    async fn orphan(&self, seen: &Arc<Mutex<Seen>>) -> WorkerHandle {
        self.mill().put(Orphan).await.unwrap();
        let request = ClaimRequest {
            queue: QueueName::new(Orphan::QUEUE).unwrap(),
            max: 1,
            lease: None,
            worker: WorkerId::random().unwrap(),
            source: None,
            token: Token::random().unwrap(),
        };
        let claim = self.mill().store().claim(request).await.unwrap();
        assert_eq!(claim.tasks.len(), 1);
        let seen = seen.clone();
        let worker = Worker::new(&self.mills[1]).handle(move |_: Orphan| {
            seen.lock().unwrap().orphans += 1;
            async { Ok::<(), String>(()) }
        });
        worker.start().await.unwrap()
    }
}

/// What handlers saw.
#[derive(Debug, Default)]
struct Seen {
    /// How often each long task was begun.
    begun: BTreeMap<u32, u32>,
    ended: u32,
    ticks: u32,
    orphans: u32,
}

/// Workers and a scheduler on each mill go through these jumps, each by so many
/// seconds off the machine's clock.
async fn go_through(kind: &str, jumps: &[i64]) {
    let site = Site::new(kind).await;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (go, going) = watch::channel(0u32);
    let (stop, stopping) = watch::channel(false);
    let mut workers = Vec::new();
    let mut schedulers = Vec::new();
    for mill in &site.mills {
        let (long, tick) = (seen.clone(), seen.clone());
        let going = going.clone();
        let worker = Worker::new(mill)
            .processors(3)
            .handle(move |task: Long| {
                let (seen, mut going) = (long.clone(), going.clone());
                async move {
                    *seen.lock().unwrap().begun.entry(task.until).or_default() += 1;
                    going.wait_for(|now| *now >= task.until).await.map_err(|e| e.to_string())?;
                    seen.lock().unwrap().ended += 1;
                    Ok::<(), String>(())
                }
            })
            .handle(move |_: Tick| {
                tick.lock().unwrap().ticks += 1;
                async { Ok::<(), String>(()) }
            });
        workers.push(worker.start().await.unwrap());
        let every = mill.schedule("tick").every(Duration::from_secs(1)).puts(Tick);
        let mut stopping = stopping.clone();
        let scheduler = Scheduler::new(mill).clock(site.clock.clone()).schedule(every);
        schedulers.push(tokio::spawn(scheduler.run(async move {
            let _ = stopping.wait_for(|stop| *stop).await;
        })));
    }
    let at = |what: &str, n: u32, jump: i64| format!("{kind}, jump {n} to {jump} s: {what}");
    for (n, jump) in (1u32..).zip(jumps) {
        site.mill().put(Long { until: n }).await.unwrap();
        let limit = Duration::from_secs(10);
        within(limit, &at("the long one runs", n, *jump), async || {
            seen.lock().unwrap().begun.contains_key(&n)
        })
        .await;
        let finder = site.orphan(&seen).await;
        let orphaned = Instant::now();
        let (ticks, orphans) = {
            let seen = seen.lock().unwrap();
            (seen.ticks, seen.orphans)
        };
        site.just_extended().await;
        site.clock.seconds.store(*jump, Ordering::SeqCst);
        let back = LEASE + Duration::from_secs(6);
        within(back, &at("the orphan is back", n, *jump), async || {
            seen.lock().unwrap().orphans > orphans
        })
        .await;
        println!("{}: {:?}", at("the orphan is back", n, *jump), orphaned.elapsed());
        finder.stop().await.unwrap();
        within(Duration::from_secs(4), &at("the schedule goes on", n, *jump), async || {
            seen.lock().unwrap().ticks > ticks + 1
        })
        .await;
        go.send(n).unwrap();
        within(limit, &at("the long one ends", n, *jump), async || seen.lock().unwrap().ended == n)
            .await;
    }
    stop.send(true).unwrap();
    for scheduler in schedulers {
        scheduler.await.unwrap().unwrap();
    }
    for worker in workers {
        worker.stop().await.unwrap();
    }
    let seen = seen.lock().unwrap();
    assert!(seen.begun.values().all(|times| *times == 1), "{kind}: nobody lost one: {seen:?}");
    assert_eq!(seen.orphans as usize, jumps.len(), "{kind}: each orphan ran once: {seen:?}");
}

/// What a clock that was ahead left, in tasks that were put or tried then.
#[tokio::test]
async fn what_was_put_or_tried_ahead_is_told_behind_others() {
    let year = Duration::from_secs(YEAR.unsigned_abs());
    for tried in [false, true] {
        let right = SystemClock::default().now();
        let clock = Arc::new(ManualClock::at(right));
        let options = MemoryOptions { clock: clock.clone(), ..MemoryOptions::default() };
        let mill = Mill::over(Arc::new(MemoryStore::new(options)));
        mill.declare::<Tick>().await.unwrap();
        if tried {
            mill.put(Tick).await.unwrap();
        }
        clock.set_wall(right.after(year));
        if tried {
            let refuse = |_: Tick| async { Err::<(), String>("not now".to_owned()) };
            let worker = Worker::new(&mill).handle(refuse).drain(true);
            let report = worker.run(std::future::pending()).await.unwrap();
            assert_eq!(report.not_done, 1, "{report:?}");
        } else {
            mill.put(Tick).await.unwrap();
        }
        clock.set_wall(right);
        for _ in 0..5 {
            mill.put(Tick).await.unwrap();
        }
        let told = mill.doctor().await.unwrap();
        assert!(told.iter().any(|found| found.code == "tasks_ahead"), "{tried}: {told:?}");
    }
}

const THERE_AND_BACK: [i64; 2] = [HOUR, 0];
const ALL: [i64; 7] = [HOUR, 0, -HOUR, 0, YEAR, 0, 0];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_there_and_back_on_memory() {
    go_through("memory", &THERE_AND_BACK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_there_and_back_on_sqlite() {
    go_through("sqlite", &THERE_AND_BACK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_there_and_back_on_files() {
    go_through("files", &THERE_AND_BACK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_there_and_back_on_postgres() {
    go_through("postgres", &THERE_AND_BACK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute: long form"]
async fn long_every_jump_on_every_store_but_postgres() {
    for kind in ["memory", "sqlite", "files"] {
        go_through(kind, &ALL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute: long form"]
async fn long_every_jump_on_postgres() {
    go_through("postgres", &ALL).await;
}
