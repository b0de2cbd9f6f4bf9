//! What can be changed while a worker runs, what it reports, and how it goes
//! round its queues.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::ControlPlane;
use gristmill::port::{Clock as _, ManualClock};
use gristmill::worker::{Context, Orders, Worker};
use gristmill::{Mill, QueueName, TaskType};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::{Mail, gated, mills, ticking, until};

macro_rules! task_type {
    ($name:ident, $queue:literal) => {
        #[derive(Serialize, Deserialize)]
        struct $name(u64);

        impl TaskType for $name {
            const QUEUE: &'static str = $queue;
        }
    };
}
task_type!(Flood, "flood");
task_type!(Drip, "drip");
task_type!(Drop, "drop");

async fn done(mill: &Mill, queue: &str) -> u64 {
    mill.inspect().queue(queue).await.unwrap().counters.done
}

#[tokio::test]
async fn processors_come_and_go_and_queues_are_switched() {
    for (mill, _folder) in mills().await {
        mill.declare::<Drip>().await.unwrap();
        let (running, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (count, permits) = (running.clone(), gate.clone());
        let worker = Worker::new(&mill)
            .handle(move |_: Mail, context: Context| {
                let (count, permits) = (count.clone(), permits.clone());
                async move {
                    count.fetch_add(1, Ordering::SeqCst);
                    tokio::select! {
                        permit = permits.acquire() => permit.unwrap().forget(),
                        () = context.cancelled() => {}
                    }
                    count.fetch_sub(1, Ordering::SeqCst);
                    Ok::<(), String>(())
                }
            })
            .handle(|_: Drip| async { Ok::<(), String>(()) })
            .stop_within(Duration::ZERO)
            .start()
            .await
            .unwrap();
        mill.put_all((0..200).map(Mail::to)).run().await.unwrap();
        until("it", async || running.load(Ordering::SeqCst) == 1).await;
        worker.set_processors(8);
        until("it", async || running.load(Ordering::SeqCst) == 8).await;
        let views = mill.store().workers().await.unwrap();
        assert_eq!((views.len(), &views[0].report.id), (1, worker.id()));
        // A processor of its own for the trickle: it is served at once.
        worker.move_processor(0, Some("drip")).unwrap();
        assert!(worker.move_processor(0, Some("drap")).unwrap_err().to_string().contains("drip"));
        worker.set_processors(2);
        // From here on one mail after the other ends.
        let one_more = || gate.add_permits(1);
        until("it", async || {
            one_more();
            running.load(Ordering::SeqCst) <= 1 && worker.stats().processors == 2
        })
        .await;
        mill.put(Drip(1)).await.unwrap();
        until("it", async || {
            one_more();
            done(&mill, "drip").await == 1
        })
        .await;
        worker.serve("mails", false).unwrap();
        let in_hand = async || mill.inspect().queue("mails").await.unwrap().processing;
        until("it", async || {
            one_more();
            in_hand().await == 0
        })
        .await;
        // Both have looked round and found nothing that they serve.
        until("both wait", async || worker.stats().idle == 2).await;
        assert_eq!((in_hand().await, running.load(Ordering::SeqCst)), (0, 0));
        assert!(mill.inspect().queue("mails").await.unwrap().ready > 0);
        worker.serve("mails", true).unwrap();
        until("it", async || running.load(Ordering::SeqCst) == 1).await;
        assert!(worker.stats().store_away.is_none());
        worker.stop().await.unwrap();
        assert!(mill.store().workers().await.unwrap().is_empty());
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.processing, stats.failed), (0, 0));
    }
}

#[tokio::test]
async fn a_maximum_and_slots_limit_what_runs_side_by_side() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().with(|s| s.processors_max = Some(Some(2))).await.unwrap();
        mill.declare::<Drip>().with(|s| s.slots = Some(Some(3))).await.unwrap();
        mill.put_all((0..12).map(Mail::to)).run().await.unwrap();
        mill.put_all((0..12).map(Drip)).run().await.unwrap();
        let most: Arc<Mutex<[(usize, usize); 2]>> = Arc::default();
        let (inside, gate) = (most.clone(), Arc::new(Semaphore::new(0)));
        let permits = gate.clone();
        let enter = move |which: usize| {
            let (most, permits) = (most.clone(), permits.clone());
            async move {
                {
                    let mut most = most.lock().unwrap();
                    most[which].0 += 1;
                    most[which].1 = most[which].1.max(most[which].0);
                    assert!(most[0].1 <= 2 && most[1].1 <= 3, "{most:?}");
                }
                permits.acquire().await.unwrap().forget();
                most.lock().unwrap()[which].0 -= 1;
                Ok::<(), String>(())
            }
        };
        let also = enter.clone();
        let worker = Worker::new(&mill)
            .handle(move |_: Mail| enter(0))
            .handle(move |_: Drip, context: Context| {
                assert!(context.slot.is_some_and(|slot| slot < 3));
                also(1)
            })
            .processors(8)
            .drain(true);
        let running = tokio::spawn(worker.run(std::future::pending()));
        let full = || inside.lock().unwrap().map(|(now, _)| now) == [2, 3];
        until("as many as may", async || full()).await;
        until("the end", async || {
            gate.add_permits(1);
            running.is_finished()
        })
        .await;
        let report = running.await.unwrap().unwrap();
        // A draining processor that finds every place taken ends; the others
        // do the rest.
        assert_eq!((report.done, report.not_done), (24, 0));
    }
}

#[tokio::test]
async fn a_trickle_waits_no_longer_than_two_rotations_behind_a_flood() {
    for (mill, _folder) in mills().await {
        behind_a_flood(&mill, 20_000, 20).await;
    }
}

#[tokio::test]
#[ignore = "two hundred thousand tasks: long form"]
async fn long_a_trickle_waits_no_longer_than_two_rotations_behind_a_flood() {
    // As many as memory holds, and as many as were promised.
    for ((mill, _folder), flood) in mills().await.into_iter().zip([80_000, 200_000]) {
        behind_a_flood(&mill, flood, 500).await;
    }
}

async fn behind_a_flood(mill: &Mill, flood: u64, trickle: usize) {
    mill.declare::<Flood>().await.unwrap();
    mill.declare::<Drip>().await.unwrap();
    mill.declare::<Drop>().await.unwrap();
    mill.put_all((0..flood).map(Flood)).run().await.unwrap();
    // How many of the flood ran between the put of a drip and its start.
    let (ran, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, seen) = (ran.clone(), waits.clone());
    let start = move |at: u64| {
        let now = ran.load(Ordering::SeqCst);
        seen.lock().unwrap().push(now - usize::try_from(at).unwrap());
        async { Ok::<(), String>(()) }
    };
    let (also, flood) = (start.clone(), count.clone());
    // The flood stands still while somebody puts.
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let worker = Worker::new(mill)
        .handle(move |_: Flood| {
            flood.fetch_add(1, Ordering::SeqCst);
            let permits = permits.clone();
            async move {
                permits.acquire().await.map_err(|e| e.to_string())?.forget();
                Ok::<(), String>(())
            }
        })
        .handle(move |drip: Drip| start(drip.0))
        .handle(move |drop: Drop| also(drop.0))
        .batch(50)
        .start()
        .await
        .unwrap();
    until("the flood", async || count.load(Ordering::SeqCst) > 0).await;
    for drips in 1..=trickle {
        let now = count.load(Ordering::SeqCst) as u64;
        mill.put(Drip(now)).await.unwrap();
        mill.put(Drop(now)).await.unwrap();
        until("both ran", async || {
            gate.add_permits(50);
            waits.lock().unwrap().len() == 2 * drips
        })
        .await;
    }
    gate.add_permits(1_000);
    worker.stop().await.unwrap();
    let longest = waits.lock().unwrap().iter().copied().max().unwrap();
    // A rotation is a batch from each: fifty of the flood. One may be in
    // hand and one claimed ahead when the drip is put, and one more is
    // claimed before its turn.
    assert!(longest <= 150, "{longest} of the flood went before: {:?}", waits.lock());
}

#[tokio::test]
async fn an_alert_says_that_tasks_wait_too_long() {
    for (mill, _folder) in mills().await {
        let most = Duration::from_millis(100);
        mill.declare::<Mail>().with(|s| s.max_wait = Some(Some(most))).await.unwrap();
        mill.put(Mail::to("x")).await.unwrap();
        mill.store()
            .pause_queue(&gristmill::QueueName::new("mails").unwrap(), true, "me")
            .await
            .unwrap();
        let late = Arc::new(Mutex::new(Vec::new()));
        let told = late.clone();
        let worker = Worker::new(&mill)
            .handle(|_: Mail| async { Ok::<(), String>(()) })
            .on_late(move |queue| told.lock().unwrap().push(queue.waited))
            .start()
            .await
            .unwrap();
        until("it", async || !late.lock().unwrap().is_empty()).await;
        assert!(late.lock().unwrap()[0] > most);
        worker.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_pause_gives_back_what_was_claimed_ahead() {
    for (mill, _folder) in mills().await {
        mill.put_all((0..500).map(Mail::to)).run().await.unwrap();
        let (worker, gate) = gated(&mill).await;
        let one_more = || gate.add_permits(1);
        gate.add_permits(51);
        until("it", async || done(&mill, "mails").await > 50).await;
        let queue = gristmill::QueueName::new("mails").unwrap();
        mill.store().pause_queue(&queue, true, "me").await.unwrap();
        // What is in hand finishes, the rest waits with its attempts.
        let stats = || async { mill.inspect().queue("mails").await.unwrap() };
        until("it", async || {
            one_more();
            stats().await.processing == 0
        })
        .await;
        let (waiting, finished) = (stats().await.ready, stats().await.counters.done);
        assert!(waiting > 0 && waiting + finished == 500);
        mill.store().pause_queue(&queue, false, "me").await.unwrap();
        gate.add_permits(500);
        until("it", async || done(&mill, "mails").await == 500).await;
        assert_eq!(worker.stop().await.unwrap().not_done, 0);
    }
}

#[tokio::test]
async fn a_worker_with_nothing_to_tell_says_so_seldom_and_looks_for_orders_all_the_same() {
    let mill = Mill::open("memory:").await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let clock = Arc::new(ManualClock::default());
    let worker = Worker::new(&mill).clock(clock.clone());
    let worker = worker.handle(|_: Mail| async { Ok::<(), String>(()) }).start().await.unwrap();
    let calls = || (mill.verbs().save_document.calls(), mill.verbs().document.calls());
    until("it is idle", async || worker.stats().idle == 1 && calls().1 > 0).await;
    let (said, looked) = calls();
    let began = clock.monotonic();
    ticking(&clock, Duration::from_secs(1), "it looks", async || calls().1 >= looked + 12).await;
    let passed = clock.monotonic().checked_sub(began).unwrap();
    // Once more at most, for what it does when it begins.
    let most = said + passed.as_secs() / 24 + 2;
    assert!(calls().0 <= most, "{:?} within {passed:?}, and {said} before", calls());
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_worker_elsewhere_is_quiet_goes_on_moves_and_stops() {
    for (mill, _folder) in mills().await {
        mill.declare::<Drip>().await.unwrap();
        let clock = Arc::new(ManualClock::default());
        let worker = Worker::new(&mill)
            .clock(clock.clone())
            .processors(2)
            .handle(|_: Mail| async { Ok::<(), String>(()) })
            .handle(|_: Drip| async { Ok::<(), String>(()) })
            .start()
            .await
            .unwrap();
        // It hears of it when it looks next.
        let hears = async |what: &str, heard: &dyn Fn() -> bool| {
            until(what, async || {
                clock.advance(Duration::from_secs(9));
                heard()
            })
            .await;
        };
        until("it reports", async || !mill.store().workers().await.unwrap().is_empty()).await;
        let id = worker.id().clone();
        mill.order_worker(&id, |orders| orders.quiet = true).await.unwrap();
        hears("it is quiet", &|| worker.stats().processors == 0).await;
        mill.put(Mail::to(1)).await.unwrap();
        assert!(mill.worker_orders().await.unwrap()[&id].quiet);
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, 1, "nobody claims");
        let drip = QueueName::new("drip").unwrap();
        let moved = |orders: &mut Orders| {
            orders.quiet = false;
            orders.moved.insert(1, drip.clone());
        };
        mill.order_worker(&id, moved).await.unwrap();
        let serving = || worker.stats().serving;
        hears("one serves the trickle", &|| serving().contains(&Some(drip.clone()))).await;
        until("the other goes on", async || done(&mill, "mails").await == 1).await;
        mill.order_worker(&id, |orders| orders.stop = true).await.unwrap();
        // From here on its clock stands: its farewell has a second by it.
        until("it stops", async || {
            let over = worker.stats().processors == 0;
            if !over {
                clock.advance(Duration::from_secs(9));
            }
            over
        })
        .await;
        assert_eq!(worker.ended().await.unwrap().done, 1);
        assert!(mill.worker_orders().await.unwrap().is_empty(), "nobody has its id again");
        let unknown = mill.order_worker(&id, |orders| orders.quiet = true).await.unwrap_err();
        assert!(unknown.to_string().contains("no worker"), "{unknown}");
    }
}
