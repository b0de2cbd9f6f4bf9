//! Leases over a store that misbehaves: they end at their holder too, and nothing
//! else that is asked of the store holds them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gristmill::port::Clock;
use gristmill::testing::{Fault, ManualClock, Verb};
use gristmill::worker::{Context, Worker, WorkerHandle};
use tokio::sync::Notify;

use crate::faulty::{Bad, every_store, side_by_side};
use crate::{Mail, ticking, until};

/// A handler that runs until it is cancelled, and what it tells.
#[derive(Clone, Default)]
struct Watched {
    begun: Arc<Notify>,
    cancelled: Arc<Notify>,
}

impl Watched {
    async fn start(&self, bad: &Bad, lease: Duration) -> WorkerHandle {
        self.start_as(Worker::new(&bad.mill), bad, lease).await
    }

    async fn start_as(&self, worker: Worker, bad: &Bad, lease: Duration) -> WorkerHandle {
        bad.mill.declare::<Mail>().lease(lease).await.unwrap();
        bad.mill.put(Mail::to("a")).await.unwrap();
        let watched = self.clone();
        let worker = worker.stop_within(Duration::ZERO);
        let worker = worker.handle(move |_: Mail, context: Context| {
            let watched = watched.clone();
            async move {
                watched.begun.notify_one();
                context.cancelled().await;
                watched.cancelled.notify_one();
                Err::<(), _>("stopped")
            }
        });
        let worker = worker.start().await.unwrap();
        self.begun.notified().await;
        worker
    }
}

/// The store says nothing, or no: the holder knows by itself when its time is
/// over.
#[tokio::test]
async fn a_lease_ends_at_its_holder_whatever_the_store_says() {
    for fault in [Fault::Hangs, Fault::Refuses, Fault::UnknownDone] {
        ends_at_its_holder(every_store().await, fault).await;
    }
}

pub(crate) async fn ends_at_its_holder(stores: Vec<Bad>, fault: Fault) {
    side_by_side(stores, move |bad| async move {
        let (watched, lease) = (Watched::default(), Duration::from_millis(600));
        let worker = watched.start(&bad, lease).await;
        let start = Instant::now();
        bad.store.fails_at(&[Verb::Extend], fault);
        watched.cancelled.notified().await;
        let took = start.elapsed();
        assert!(took > lease / 3 && took < lease + lease, "{fault:?}: {took:?}");
        until("it counts", async || worker.stats().report.lease_lost == 1).await;
        bad.store.heal();
        worker.stop().await.unwrap();
    })
    .await;
}

/// The machine slept for longer than the lease: no timer noticed, and the store
/// has said nothing yet.
#[tokio::test]
async fn time_in_which_the_machine_slept_counts() {
    side_by_side(every_store().await, |bad| async move {
        let (watched, clock) = (Watched::default(), Arc::new(ManualClock::default()));
        let worker = Worker::new(&bad.mill).clock(clock.clone());
        let worker = watched.start_as(worker, &bad, Duration::from_secs(60)).await;
        let (step, ten) = (Duration::from_millis(100), Duration::from_secs(10));
        let looks = async || {
            let next = bad.store.calls(Verb::Sweep) + 1;
            let looked = async || bad.store.calls(Verb::Sweep) >= next;
            ticking(&clock, step, "a look", looked).await;
        };
        looks().await;
        clock.machine_sleeps(4 * ten);
        looks().await;
        assert_eq!(worker.stats().report.lease_lost, 0, "ten seconds are left of it");
        clock.machine_sleeps(2 * ten);
        let lost = async || worker.stats().report.lease_lost == 1;
        ticking(&clock, step, "it is lost", lost).await;
        watched.cancelled.notified().await;
        assert!(clock.monotonic() < 2 * ten, "its extension was not due");
        worker.stop().await.unwrap();
    })
    .await;
}

/// What a sweep, a claim or a report waits for is not waited for by a heartbeat.
#[tokio::test]
async fn nothing_else_that_hangs_holds_a_heartbeat_up() {
    side_by_side(every_store().await, |bad| async move {
        let (watched, lease) = (Watched::default(), Duration::from_millis(600));
        let worker = watched.start(&bad, lease).await;
        let others = [Verb::Sweep, Verb::Claim, Verb::ReportWorker, Verb::Assignment, Verb::Queues];
        bad.store.fails_at(&others, Fault::Hangs);
        bad.store.called(Verb::Sweep, bad.store.calls(Verb::Sweep) + 1).await;
        // Three times its length.
        bad.store.called(Verb::Extend, bad.store.calls(Verb::Extend) + 9).await;
        let stats = bad.mill.store().stats().await.unwrap();
        assert_eq!((stats[0].processing, worker.stats().report.lease_lost), (1, 0));
        bad.store.heal();
        worker.stop().await.unwrap();
    })
    .await;
}

/// A server crashed before a claim was on its disk, and has given the task to
/// somebody else since.
#[tokio::test]
async fn a_claim_that_the_store_forgot_is_cancelled_and_its_task_runs_again() {
    for bad in every_store().await {
        let Bad { mill, store, .. } = &bad;
        mill.declare::<Mail>().lease(Duration::from_millis(600)).await.unwrap();
        mill.put(Mail::to("a")).await.unwrap();
        store.fails_at(&[Verb::Claim], Fault::Forgets);
        let runs = Arc::new(AtomicU32::new(0));
        let count = runs.clone();
        let worker = Worker::new(mill).handle(move |_: Mail, context: Context| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    context.cancelled().await;
                    return Err("stopped");
                }
                Ok(())
            }
        });
        let worker = worker.start().await.unwrap();
        store.called(Verb::Extend, 1).await;
        store.heal();
        until("it ran again", async || worker.stats().report.done == 1).await;
        let report = worker.stop().await.unwrap();
        assert_eq!((report.lease_lost, runs.load(Ordering::SeqCst)), (1, 2));
        assert_eq!(mill.inspect().queue("mails").await.unwrap().total(), 0);
    }
}
