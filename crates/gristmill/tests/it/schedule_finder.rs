//! Finders: under the schedule's lease, within the queue's room, and found
//! again whatever ended the run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::ControlPlane;
use gristmill::Mill;
use gristmill::port::WorkerId;
use gristmill::schedule::{Finding, Scheduler};
use gristmill::sqlite::rusqlite::Connection;
use gristmill::testing::{Faulty, Verb};
use tokio::sync::Notify;

use crate::schedule::{MINUTE, Timed, finish_one, timed};
use crate::{Mail, until};

/// Rows that are due until they are put.
#[derive(Clone)]
struct Rows(Arc<Mutex<Vec<u32>>>);

impl Rows {
    fn new(count: u32) -> Self {
        Rows(Arc::new(Mutex::new((0..count).collect())))
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    async fn find(self, finding: Finding) -> Result<(), gristmill::Error> {
        while finding.can_accept().await? {
            let Some(row) = self.0.lock().unwrap().first().copied() else { break };
            finding.put(Mail::to(row)).await?;
            self.0.lock().unwrap().retain(|left| *left != row);
        }
        Ok(())
    }
}

fn with_rows(t: &Timed, rows: &Rows) -> Scheduler {
    let rows = rows.clone();
    let find = move |finding| rows.clone().find(finding);
    t.scheduler().schedule(t.mill.schedule("find").every(MINUTE).finder("mails", find))
}

#[tokio::test]
async fn it_puts_what_is_due_at_each_fire_and_once_for_missed_ones() {
    for t in timed().await {
        let rows = Rows::new(3);
        let mut scheduler = with_rows(&t, &rows);
        scheduler.run_due().await.unwrap();
        assert_eq!(rows.left(), 3, "not before its first fire");
        t.clock.advance(5 * MINUTE);
        scheduler.run_due().await.unwrap();
        scheduler.run_due().await.unwrap();
        assert_eq!((rows.left(), t.tasks().await.len()), (0, 3));
        assert_eq!(scheduler.report().found, 1);
        // A scheduler without the code leaves it alone.
        t.clock.advance(MINUTE);
        let mut stranger = t.scheduler();
        stranger.run_due().await.unwrap();
        assert_eq!(stranger.report().found, 0);
        scheduler.run_due().await.unwrap();
        assert_eq!(scheduler.report().found, 2);
    }
}

#[tokio::test]
async fn it_is_run_by_hand_where_its_code_is() {
    for t in timed().await {
        let rows = Rows::new(3);
        let mut scheduler = with_rows(&t, &rows);
        scheduler.run_due().await.unwrap();
        let before = t.mill.store().schedules().await.unwrap();
        t.mill.store().pause_schedule(&before[0].declared.name, true, "me").await.unwrap();
        let answer = t.mill.fire_schedule("find").await.unwrap();
        assert_eq!(answer, gristmill::port::FireAnswer::Fired(Vec::new()));
        assert_eq!((rows.left(), t.tasks().await.len()), (0, 3), "also while it is paused");
        let after = t.mill.store().schedules().await.unwrap();
        assert_eq!(after[0].decided_until, before[0].decided_until, "nothing is decided");
        // While it runs elsewhere it does not run here.
        let other = WorkerId::random().unwrap();
        t.mill.store().campaign("schedule/find", &other, MINUTE).await.unwrap();
        let error = t.mill.fire_schedule("find").await.unwrap_err().to_string();
        assert!(error.contains("runs already"), "{error}");
    }
}

#[tokio::test]
async fn asked_for_by_a_stranger_it_is_run_once_where_its_code_is() {
    for t in timed().await {
        let rows = Rows::new(3);
        let mut scheduler = with_rows(&t, &rows);
        scheduler.run_due().await.unwrap();
        let name = t.mill.store().schedules().await.unwrap()[0].declared.name.clone();
        t.mill.store().pause_schedule(&name, true, "me").await.unwrap();
        let stranger = Mill::over(t.mill.store());
        let answer = stranger.fire_schedule("find").await.unwrap();
        assert_eq!(answer, gristmill::port::FireAnswer::Asked);
        Scheduler::new(&stranger).clock(t.clock.clone()).run_due().await.unwrap();
        assert_eq!(rows.left(), 3, "a scheduler without the code cannot");
        scheduler.run_due().await.unwrap();
        assert_eq!((rows.left(), scheduler.report().found), (0, 1), "also while it is paused");
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(scheduler.report().found, 1, "once");
        // Its rule goes on as if nobody had asked.
        t.mill.store().pause_schedule(&name, false, "me").await.unwrap();
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(scheduler.report().found, 2);
    }
}

#[tokio::test]
async fn it_stops_at_a_full_queue_and_finds_the_rest_later() {
    for t in timed().await {
        t.mill.declare::<Mail>().capacity(4).await.unwrap();
        let rows = Rows::new(10);
        let mut scheduler = with_rows(&t, &rows);
        scheduler.run_due().await.unwrap();
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(rows.left(), 6, "four fit");
        finish_one(&t).await;
        scheduler.run_due().await.unwrap();
        assert_eq!(rows.left(), 6, "this fire is over");
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!((rows.left(), t.tasks().await.len()), (5, 4));
    }
}

#[tokio::test]
async fn on_sqlite_it_puts_in_the_transaction_that_marks_the_row() {
    let t = timed().await.pop().unwrap();
    t.mill.declare::<Mail>().capacity(2).await.unwrap();
    let file = t.mill.sqlite().unwrap().path().to_owned();
    let found = Arc::new(Mutex::new(Vec::new()));
    let counted = found.clone();
    let find = move |finding: Finding| {
        let (file, counted) = (file.clone(), counted.clone());
        async move {
            let mut connection = Connection::open(file).map_err(|e| e.to_string())?;
            for commits in [false, true] {
                let transaction = connection.transaction().map_err(|e| e.to_string())?;
                for name in ["ada", "eve"] {
                    let put = finding.put(Mail::to(name)).within(&transaction).now().map(drop);
                    put.map_err(|e| e.to_string())?;
                }
                let full = finding.put(Mail::to("bob")).within(&transaction).now().map(drop);
                assert!(full.is_err_and(|error| error.is_full()));
                if commits {
                    transaction.commit().map_err(|e| e.to_string())?;
                }
                counted.lock().unwrap().push(finding.found());
            }
            Ok::<(), String>(())
        }
    };
    let every = t.mill.schedule("find").every(MINUTE).finder("mails", find);
    let mut scheduler = t.scheduler().schedule(every);
    scheduler.run_due().await.unwrap();
    t.clock.advance(MINUTE);
    scheduler.run_due().await.unwrap();
    assert_eq!(t.tasks().await.len(), 2, "what was rolled back does not stand");
    assert_eq!(*found.lock().unwrap(), [2, 4], "counted as it was put");
}

#[tokio::test]
async fn one_process_at_a_time_finds() {
    for t in timed().await {
        let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let runs = Arc::new(AtomicU32::new(0));
        let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let scheduler = || {
            let (inside, most, runs) = (inside.clone(), most.clone(), runs.clone());
            let (begun, go) = (begun.clone(), go.clone());
            let find = move |_finding: Finding| {
                let (inside, most, runs) = (inside.clone(), most.clone(), runs.clone());
                let (begun, go) = (begun.clone(), go.clone());
                async move {
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    begun.notify_one();
                    go.notified().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    runs.fetch_add(1, Ordering::SeqCst);
                    Ok::<(), String>(())
                }
            };
            t.scheduler().schedule(t.mill.schedule("find").every(MINUTE).finder("mails", find))
        };
        let mut schedulers: Vec<Scheduler> = (0..4).map(|_| scheduler()).collect();
        for scheduler in &mut schedulers {
            scheduler.run_due().await.unwrap();
        }
        t.clock.advance(MINUTE);
        let mut first = schedulers.remove(0);
        let finding = tokio::spawn(async move { (first.run_due().await, first) });
        begun.notified().await;
        // The others ask while it is at it, and after it.
        for scheduler in &mut schedulers {
            let asked = tokio::time::timeout(MINUTE, scheduler.run_due()).await;
            asked.expect("it does not find beside the first").unwrap();
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0, "it is still at it");
        go.notify_one();
        let (found, first) = finding.await.unwrap();
        found.unwrap();
        schedulers.push(first);
        for scheduler in &mut schedulers {
            scheduler.run_due().await.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), 1, "side by side");
        assert_eq!(runs.load(Ordering::SeqCst), 1, "runs for one instant");
    }
}

#[tokio::test]
async fn a_lost_lease_drops_the_run_and_leaves_the_instant() {
    for t in timed().await {
        let begun = Arc::new(Notify::new());
        let tell = begun.clone();
        let find = move |_finding: Finding| {
            tell.notify_one();
            std::future::pending::<Result<(), String>>()
        };
        let every = t.mill.schedule("find").every(MINUTE).finder("mails", find);
        let mut scheduler = t.scheduler().hold(Duration::from_millis(300)).schedule(every);
        scheduler.run_due().await.unwrap();
        t.clock.advance(MINUTE);
        let (mill, clock) = (t.mill.clone(), t.clock.clone());
        let thief = tokio::spawn(async move {
            begun.notified().await;
            // By the store's clock the lease is over, and another has it.
            clock.advance(Duration::from_secs(1));
            let other = WorkerId::random().unwrap();
            let taken = mill.store().campaign("schedule/find", &other, MINUTE).await.unwrap();
            assert!(taken.mine);
        });
        scheduler.run_due().await.unwrap();
        thief.await.unwrap();
        assert_eq!(scheduler.report().found, 0);
        let known = t.mill.store().schedules().await.unwrap().remove(0);
        assert_eq!(known.decided_until, known.created_at, "the other one decides it");
    }
}

#[tokio::test]
async fn an_error_or_a_panic_is_not_the_end() {
    for t in timed().await {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let find = move |finding: Finding| {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                match run {
                    0 => Err("the database is away".to_owned()),
                    1 => panic!("on purpose"),
                    _ => finding.put(Mail::to("found")).await.map(drop).map_err(|e| e.to_string()),
                }
            }
        };
        let every = t.mill.schedule("find").every(MINUTE).finder("mails", find);
        let mut scheduler = t.scheduler().schedule(every);
        scheduler.run_due().await.unwrap();
        for run in 1..=3 {
            t.clock.advance(MINUTE);
            scheduler.run_due().await.unwrap();
            assert_eq!(runs.load(Ordering::SeqCst), run);
        }
        assert_eq!(t.tasks().await.len(), 1);
    }
}

#[tokio::test]
async fn a_run_that_hangs_ends_by_its_timeout() {
    for t in timed().await {
        let begun = Arc::new(Notify::new());
        let tell = begun.clone();
        let find = move |_: Finding| {
            tell.notify_one();
            std::future::pending::<Result<(), String>>()
        };
        let limit = 30 * MINUTE;
        let every = t.mill.schedule("find").every(MINUTE).timeout(limit);
        let mut scheduler = t.scheduler().hold(2 * limit).schedule(every.finder("mails", find));
        scheduler.run_due().await.unwrap();
        for run in 1..=2 {
            t.clock.advance(MINUTE);
            let mut looking = Box::pin(scheduler.run_due());
            tokio::select! {
                looked = &mut looking => panic!("it ended: {looked:?}"),
                () = begun.notified() => t.clock.advance(limit - Duration::from_millis(1)),
            }
            let last = async { t.clock.advance(Duration::from_millis(1)) };
            tokio::select! {
                biased;
                looked = &mut looking => panic!("it ended before its time: {looked:?}"),
                () = last => {}
            }
            looking.await.unwrap();
            assert_eq!(scheduler.report().found, run);
        }
    }
}

#[tokio::test]
async fn a_long_run_keeps_its_lease_while_others_ask() {
    // Real time: the lease is shorter than the run, and has to be renewed.
    let store = Faulty::over(Mill::open("memory:").await.unwrap().store());
    let (mill, hold) = (Mill::over(store.clone()), Duration::from_millis(500));
    mill.declare::<Mail>().await.unwrap();
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let ended = Arc::new(AtomicU32::new(0));
    let (stop, _) = tokio::sync::broadcast::channel::<()>(1);
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (inside, most, ended) = (inside.clone(), most.clone(), ended.clone());
        let store = store.clone();
        let find = move |_finding: Finding| {
            let (inside, most, ended) = (inside.clone(), most.clone(), ended.clone());
            let store = store.clone();
            async move {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Each time the lease is renewed, or another one asks for it.
                let begun = Instant::now();
                while begun.elapsed() < 2 * hold {
                    store.called(Verb::Campaign, store.calls(Verb::Campaign) + 1).await;
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                ended.fetch_add(1, Ordering::SeqCst);
                Ok::<(), String>(())
            }
        };
        let every = mill.schedule("find").every(Duration::from_secs(1)).finder("mails", find);
        let scheduler = Scheduler::new(&mill).hold(hold).schedule(every);
        let mut stopped = stop.subscribe();
        running.spawn(scheduler.run(async move { drop(stopped.recv().await) }));
    }
    until("two runs", async || ended.load(Ordering::SeqCst) >= 2).await;
    stop.send(()).unwrap();
    let reports = running.join_all().await;
    let found: u64 = reports.into_iter().map(|report| report.unwrap().found).sum();
    assert_eq!(most.load(Ordering::SeqCst), 1, "side by side");
    assert!(found >= 2, "{found} runs");
}
