//! Trouble: a store that is away for a while, a lease that is lost, handlers
//! that do not listen, and what is not started in time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::QueueName;
use gristmill::port::{Action, ClaimRequest, Clock, Operation, Selection, Token, WorkerId};
use gristmill::sqlite::rusqlite::Connection;
use gristmill::testing::{ManualClock, TestMill};
use gristmill::worker::{Context, Worker};
use tokio::sync::Notify;

use crate::said::Said;
use crate::{Mail, gated, mills, ticking, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_waits_for_a_store_that_is_away_and_goes_on() {
    let (mill, folder) = mills().await.pop().unwrap();
    mill.put_all((0..200).map(Mail::to)).run().await.unwrap();
    let (worker, gate) = gated(&mill).await;
    gate.add_permits(1);
    until("a first one", async || worker.stats().report.done > 0).await;
    let thief = Connection::open(folder.path().join("test.db")).unwrap();
    thief.execute_batch("BEGIN IMMEDIATE").unwrap();
    gate.add_permits(200);
    let locked = Instant::now();
    let away = || worker.stats().store_away;
    within(Duration::from_secs(3), "it says so", async || away().is_some()).await;
    println!("said so after {:?}", locked.elapsed());
    let before = worker.stats().report.done;
    until("it lasts", async || away().is_some_and(|away| away > Duration::from_secs(4))).await;
    assert_eq!(worker.stats().report.done, before);
    thief.execute_batch("ROLLBACK").unwrap();
    let total = async || mill.inspect().queue("mails").await.unwrap().total();
    within(Duration::from_secs(20), "all is done", async || total().await == 0).await;
    within(Duration::from_secs(5), "it is back", async || away().is_none()).await;
    let report = worker.stop().await.unwrap();
    assert_eq!((report.done, report.lease_lost), (200, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handler_that_ignores_its_cancel_cannot_settle_after_its_lease_is_anothers() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>()
            .with(|s| s.timeout = Some(Duration::from_millis(100)))
            .await
            .unwrap();
        mill.put(Mail::to("x")).await.unwrap();
        let (runs, returns) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (count, returned) = (runs.clone(), returns.clone());
        let (release, blocks) = std::sync::mpsc::channel::<()>();
        let blocks = Arc::new(Mutex::new(blocks));
        let deaf = Worker::new(&mill)
            .handle(move |_: Mail| {
                count.fetch_add(1, Ordering::SeqCst);
                let (blocks, returned) = (blocks.clone(), returned.clone());
                async move {
                    // Deaf, and on a thread of the runtime.
                    let _ = blocks.lock().unwrap().recv();
                    returned.fetch_add(1, Ordering::SeqCst);
                    Ok::<(), String>(())
                }
            })
            .start()
            .await
            .unwrap();
        until("a start", async || runs.load(Ordering::SeqCst) == 1).await;
        // It has been given up after its time and three seconds of grace.
        let processing = async || mill.inspect().queue("mails").await.unwrap().processing;
        within(Duration::from_secs(4), "it is given up", async || processing().await == 0).await;
        deaf.serve("mails", false).unwrap();
        let held = Arc::new(Mutex::new(None));
        let tell = held.clone();
        let other = Worker::new(&mill)
            .handle(move |_: Mail, context: Context| {
                *tell.lock().unwrap() = Some(context.attempt);
                async { Err::<(), _>("not yet") }
            })
            .start()
            .await
            .unwrap();
        until("the other has it", async || held.lock().unwrap().is_some()).await;
        // The deaf one returns meanwhile, and nobody hears it.
        drop(release);
        until("it returned", async || returns.load(Ordering::SeqCst) == 1).await;
        other.stop().await.unwrap();
        let report = deaf.stop().await.unwrap();
        assert_eq!((report.done, report.not_done), (0, 1));
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.counters.done, stats.pending()), (0, 1));
    }
}

#[tokio::test]
async fn what_does_not_start_within_two_seconds_goes_back() {
    for (mill, _folder) in mills().await {
        mill.put_all((0..30).map(Mail::to)).run().await.unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let count = runs.clone();
        let clock = Arc::new(ManualClock::default());
        let worker = Worker::new(&mill)
            .clock(clock.clone())
            .handle(move |_: Mail, context: Context| {
                let run = count.fetch_add(1, Ordering::SeqCst);
                async move {
                    // Quick at first, so that many are claimed; then it hangs.
                    if run == 5 {
                        context.cancelled().await;
                    }
                    Ok::<(), String>(())
                }
            })
            .stop_within(Duration::ZERO)
            .start()
            .await
            .unwrap();
        let many = async || mill.inspect().queue("mails").await.unwrap().processing > 1;
        until("it hangs", async || runs.load(Ordering::SeqCst) == 6 && many().await).await;
        clock.advance(Duration::from_millis(1_999));
        tokio::task::yield_now().await;
        assert!(many().await, "they have a millisecond left");
        clock.advance(Duration::from_millis(1));
        until("all but one are back", async || {
            let stats = mill.inspect().queue("mails").await.unwrap();
            (stats.processing, stats.ready) == (1, 24)
        })
        .await;
        worker.stop().await.unwrap();
        let request = gristmill::port::ListRequest { limit: 100, ..Default::default() };
        let page = mill.inspect().list(request).await.unwrap();
        assert!(page.tasks.iter().all(|task| task.attempts == 0));
    }
}

#[tokio::test]
async fn an_operator_cancels_what_runs() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().with(|s| s.lease = Some(Duration::from_millis(300))).await.unwrap();
        let id = mill.put(Mail::to("x")).await.unwrap().id();
        let worker = Worker::new(&mill)
            .handle(|_: Mail, context: Context| async move {
                context.cancelled().await;
                Err::<(), _>("stopped")
            })
            .start()
            .await
            .unwrap();
        let queue = async || mill.inspect().queue("mails").await.unwrap();
        until("it runs", async || queue().await.processing == 1).await;
        let operation = Operation {
            action: Action::Cancel,
            selection: Selection::Ids(vec![id]),
            limit: 10,
            by: "me".to_owned(),
            note: None,
            start: gristmill::port::Start::Now,
        };
        mill.store().operate(operation).await.unwrap();
        within(Duration::from_secs(5), "it is gone", async || queue().await.total() == 0).await;
        worker.stop().await.unwrap();
        assert_eq!(mill.inspect().queue("mails").await.unwrap().counters.cancelled, 1);
    }
}

/// What is said of a cycle that takes too long.
const SLOW: &str = "a cycle takes too long";

#[tokio::test]
async fn a_cycle_that_takes_too_long_is_reported_once() {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    for (mill, _folder) in mills().await {
        mill.put(Mail::to("slow")).await.unwrap();
        mill.put(Mail::to("quick")).await.unwrap();
        let (clock, go) = (Arc::new(ManualClock::default()), Arc::new(Notify::new()));
        let ends = go.clone();
        let worker = Worker::new(&mill)
            .clock(clock.clone())
            .handle(move |mail: Mail| {
                let ends = ends.clone();
                async move {
                    if mail.to == "slow" {
                        ends.notified().await;
                    }
                    Ok::<(), String>(())
                }
            })
            .batch(1)
            .slow_cycle(Duration::from_secs(10))
            .drain(true);
        let running = tokio::spawn(worker.run(std::future::pending()));
        let before = said.count(SLOW);
        let once = async || said.count(SLOW) == before + 1;
        ticking(&clock, Duration::from_secs(1), "it is said", once).await;
        assert!(clock.monotonic() >= Duration::from_secs(10), "{:?}", clock.monotonic());
        clock.advance(Duration::from_secs(20));
        go.notify_one();
        let report = running.await.unwrap().unwrap();
        assert_eq!((report.done, report.slow_cycles), (2, 1));
    }
    assert_eq!(said.count(SLOW), 2, "one a store");
    assert_eq!(gristmill::worker::SLOW_CYCLE, Duration::from_secs(10));
}

#[tokio::test]
async fn a_task_that_fails_by_its_last_leases_end_is_told_of_once() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().max_attempts(1).await.unwrap();
        mill.put(Mail::to("poison")).key("k").await.unwrap();
        // A worker that died with it.
        let (store, token) = (mill.store(), Token::random().unwrap());
        let lease = Some(Duration::from_millis(300));
        let (queue, worker) = (QueueName::new("mails").unwrap(), WorkerId::random().unwrap());
        let request = ClaimRequest { queue, max: 1, lease, worker, source: None, token };
        assert_eq!(store.claim(request).await.unwrap().tasks.len(), 1);
        let told = Arc::new(Mutex::new(Vec::new()));
        let start = async || {
            let told = told.clone();
            let worker = Worker::new(&mill)
                .handle(|_: Mail| async { Ok::<(), String>(()) })
                .on_failed(move |failed| {
                    let (key, to) = (failed.task.key.clone(), failed.task.payload.clone());
                    told.lock().unwrap().push((key, to, failed.error.to_owned()));
                });
            worker.start().await.unwrap()
        };
        let workers = [start().await, start().await];
        until("somebody is told", async || !told.lock().unwrap().is_empty()).await;
        for worker in workers {
            worker.stop().await.unwrap();
        }
        let told = told.lock().unwrap().clone();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].0.as_deref(), told[0].1.bytes.len()), (Some("k"), 15));
        assert!(told[0].2.contains("lease ran out"), "{told:?}");
    }
}

/// A task that cannot be read fails, on_failed hears of it, and a worker that
/// drains goes on with those behind it.
#[tokio::test]
async fn a_damaged_task_ends_no_drain() {
    let (mill, folder) = mills().await.pop().unwrap();
    mill.put_all((0..5).map(Mail::to)).run().await.unwrap();
    let path = folder.path().join("test.db");
    let file = Connection::open(path).unwrap();
    file.execute_batch("UPDATE gristmill_task SET encoding = 7 WHERE id IN (1, 2, 4)").unwrap();
    let failed = Arc::new(Mutex::new(Vec::new()));
    let told = failed.clone();
    let report = Worker::new(&mill)
        .handle(|_: Mail| async { Ok::<(), String>(()) })
        .on_failed(move |failed| told.lock().unwrap().push(failed.error.to_owned()))
        .batch(1)
        .drain(true)
        .run(std::future::pending())
        .await
        .unwrap();
    assert_eq!(report.done, 2);
    assert_eq!(mill.inspect().queue("mails").await.unwrap().failed, 3);
    let why = "stored data of this task is damaged: its encoding is 7, which is none";
    assert_eq!(*failed.lock().unwrap(), [why, why, why]);
}

/// A drain that starts right after a jump of the clock, as cron starts them: it
/// waits as long as the lease that ran out is spared, and then has the task.
#[tokio::test]
async fn a_drain_outlasts_what_a_jump_holds_back() {
    let mill = TestMill::new();
    mill.declare::<Mail>().lease(Duration::from_secs(3)).await.unwrap();
    mill.put(Mail::to("x")).await.unwrap();
    let claim = ClaimRequest {
        queue: QueueName::new("mails").unwrap(),
        max: 1,
        lease: None,
        worker: WorkerId::new("killed").unwrap(),
        source: None,
        token: Token::random().unwrap(),
    };
    assert_eq!(mill.store().claim(claim).await.unwrap().tasks.len(), 1);
    let clock = mill.clock();
    clock.set_wall(clock.now().after(Duration::from_secs(3600)));
    let worker = Worker::new(&mill).handle(|_: Mail| async { Ok::<(), String>(()) });
    let worker = worker.clock(clock.clone()).drain(true);
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));
    let ended = async || running.is_finished();
    ticking(clock, Duration::from_millis(50), "it ends", ended).await;
    assert_eq!(running.await.unwrap().unwrap().done, 1);
}
