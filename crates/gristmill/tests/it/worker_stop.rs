//! A stop ends within its word, whatever the store or a handler does, and says
//! what it left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gristmill::testing::{Fault, Verb};
use gristmill::worker::{Context, STOP_NOW, Worker};
use tokio::sync::Notify;

use crate::faulty::{Bad, every_store, side_by_side};
use crate::{Mail, mills, until};

/// A handler that tells when it begins and ends when it is told.
#[derive(Clone, Default)]
pub(crate) struct Steps {
    pub(crate) begun: Arc<Notify>,
    pub(crate) go: Arc<Notify>,
}

impl Steps {
    pub(crate) fn handle(&self, worker: Worker) -> Worker {
        let steps = self.clone();
        worker.handle(move |_: Mail| {
            let steps = steps.clone();
            async move {
                steps.begun.notify_one();
                steps.go.notified().await;
                Ok::<(), String>(())
            }
        })
    }
}

/// The handler ends well, but the store is away: what was done is not on record,
/// and the worker ends all the same and says so.
pub(crate) async fn stops_while(stores: Vec<Bad>, fault: Fault) {
    side_by_side(stores, move |bad| async move {
        let Bad { mill, store, .. } = bad;
        mill.put(Mail::to("a")).await.unwrap();
        let (steps, within) = (Steps::default(), Duration::from_millis(100));
        let worker = steps.handle(Worker::new(&mill).stop_within(within)).start().await.unwrap();
        steps.begun.notified().await;
        store.fails(fault);
        steps.go.notify_one();
        let start = Instant::now();
        let report = worker.stop().await.unwrap();
        let took = start.elapsed();
        assert!(took < within + STOP_NOW, "{fault:?}: {took:?}");
        assert_eq!((report.done, report.left.unsettled), (0, 1), "{fault:?}");
        let left = &report.left.tasks[0];
        assert!(left.queue.as_str() == "mails" && !left.running);
        // It comes back: the store has it under a lease that nobody extends.
        store.heal();
        assert_eq!(mill.inspect().queue("mails").await.unwrap().processing, 1);
    })
    .await;
}

#[tokio::test]
async fn a_stop_ends_while_the_store_refuses() {
    stops_while(every_store().await, Fault::Refuses).await;
}

#[tokio::test]
async fn a_stop_ends_while_the_store_hangs() {
    stops_while(every_store().await, Fault::Hangs).await;
}

#[tokio::test]
async fn a_stop_ends_while_every_answer_is_unknown() {
    stops_while(every_store().await, Fault::UnknownUndone).await;
}

/// A second signal while the first one's patience lasts, with a claim that never
/// comes back.
#[tokio::test]
async fn a_forced_stop_does_not_wait_for_a_claim() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        store.fails_at(&[Verb::Claim], Fault::Hangs);
        let steps = Steps::default();
        let worker = steps.handle(Worker::new(&mill)).start().await.unwrap();
        store.called(Verb::Claim, 1).await;
        let start = Instant::now();
        worker.force().now();
        let report = worker.stop().await.unwrap();
        assert!(start.elapsed() < STOP_NOW, "{:?}", start.elapsed());
        assert!(report.left.is_empty(), "{report:?}");
    })
    .await;
}

/// The store is back before the patience is over: nothing is left.
#[tokio::test]
async fn a_stop_waits_for_a_store_that_comes_back() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        mill.put(Mail::to("a")).await.unwrap();
        let steps = Steps::default();
        let worker = Arc::new(steps.handle(Worker::new(&mill)).start().await.unwrap());
        steps.begun.notified().await;
        store.fails_at(&[Verb::Settle], Fault::Refuses);
        let stopping = tokio::spawn({
            let worker = worker.clone();
            async move { worker.stop().await }
        });
        steps.go.notify_one();
        store.called(Verb::Settle, 3).await;
        store.heal();
        let report = stopping.await.unwrap().unwrap();
        assert_eq!(report.done, 1);
        assert!(report.left.is_empty(), "{report:?}");
    })
    .await;
}

/// A handler that never listens, on a thread of the runtime: it is left alone,
/// its task is given back, and the report says that it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_deaf_handler_is_left_alone_and_told_of() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, .. } = bad;
        mill.put(Mail::to("a")).await.unwrap();
        let (worker, begun, release) = deaf(Worker::new(&mill));
        let worker = worker.start().await.unwrap();
        until("a start", async || begun.load(Ordering::SeqCst) == 1).await;
        let start = Instant::now();
        worker.force().now();
        let report = worker.stop().await.unwrap();
        assert!(start.elapsed() < STOP_NOW, "{:?}", start.elapsed());
        assert_eq!((report.left.running, report.left.unsettled), (1, 0), "{report:?}");
        assert!(report.left.tasks[0].running);
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.ready, stats.processing), (1, 0));
        drop(release);
    })
    .await;
}

/// A worker whose handler blocks its thread until the sender is dropped.
fn deaf(worker: Worker) -> (Worker, Arc<AtomicUsize>, mpsc::Sender<()>) {
    let (release, blocks) = mpsc::channel::<()>();
    let blocks = Arc::new(std::sync::Mutex::new(blocks));
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let worker = worker.handle(move |_: Mail| {
        let blocks = blocks.clone();
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            let _ = blocks.lock().unwrap().recv();
            Ok::<(), String>(())
        }
    });
    (worker, begun, release)
}

/// No thread of the runtime is left to run the worker: who waits for it still
/// gets the report in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_ends_while_handlers_block_every_thread() {
    let (mill, _folder) = mills().await.remove(0);
    mill.put(Mail::to("a")).await.unwrap();
    let (worker, begun, release) = deaf(Worker::new(&mill));
    let worker = worker.start().await.unwrap();
    // No timer goes off here any more.
    while begun.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let start = Instant::now();
    worker.force().now();
    let report = worker.stop().await.unwrap();
    assert!(start.elapsed() < STOP_NOW, "{:?}", start.elapsed());
    assert_eq!(report.left.running, 1);
    drop(release);
}

/// An attempt past its timeout is extended no more, though nobody can cancel it,
/// and comes back within its lease; what its handler says later counts for
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_worker_gets_the_task_of_a_blocked_runtime() {
    // The thread is blocked for all of them, so one is enough.
    for Bad { mill, .. } in every_store().await.into_iter().take(1) {
        let second = Duration::from_secs(1);
        let declared = mill.declare::<Mail>().lease(second);
        declared.with(|s| s.timeout = Some(Duration::from_secs(1))).await.unwrap();
        mill.put(Mail::to("a")).await.unwrap();
        let (worker, begun, release) = deaf(Worker::new(&mill));
        let worker = worker.start().await.unwrap();
        while begun.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let start = Instant::now();
        // The lease and a second after its time, it may be claimed by others.
        while mill.inspect().queue("mails").await.unwrap().processing > 0 {
            assert!(start.elapsed() < second * 3, "it is extended for ever");
            std::thread::yield_now();
        }
        assert!(start.elapsed() > second, "it had its time");
        worker.serve("mails", false).unwrap();
        drop(release);
        let report = worker.stop().await.unwrap();
        assert_eq!((report.done, report.lease_lost), (0, 1), "{report:?}");
    }
}

#[tokio::test]
async fn a_handler_that_returns_after_its_time_is_timed_out() {
    for Bad { mill, .. } in every_store().await {
        let limit = Duration::from_millis(100);
        mill.declare::<Mail>().with(|s| s.timeout = Some(limit)).await.unwrap();
        let id = mill.put(Mail::to("a")).await.unwrap().id();
        let worker = Worker::new(&mill).handle(|_: Mail, context: Context| async move {
            context.cancelled().await;
            Ok::<(), String>(())
        });
        let worker = worker.start().await.unwrap();
        until("an end", async || worker.stats().report.not_done == 1).await;
        let report = worker.stop().await.unwrap();
        assert_eq!(report.done, 0);
        let task = mill.inspect().task(id).await.unwrap().unwrap();
        assert!(task.error.as_deref().is_some_and(|e| e.contains("timed out")), "{:?}", task.error);
    }
}

#[tokio::test]
async fn the_end_may_be_asked_for_in_any_order_and_again() {
    for Bad { mill, .. } in every_store().await {
        mill.put(Mail::to("a")).await.unwrap();
        let quick = |_: Mail| async { Ok::<(), String>(()) };
        let worker = Worker::new(&mill).drain(true).handle(quick).start().await.unwrap();
        let first = worker.ended().await.unwrap();
        assert_eq!(first.done, 1);
        assert_eq!(worker.stop().await.unwrap(), first);
        assert_eq!(worker.ended().await.unwrap(), first);
        let worker = Worker::new(&mill).handle(quick).start().await.unwrap();
        let (ended, stopped) = tokio::join!(worker.ended(), worker.stop());
        assert_eq!(ended.unwrap(), stopped.unwrap());
        assert_eq!(worker.stop().await.unwrap().done, 0);
    }
}

/// A store that is away at the start must not hold up a stop either.
#[tokio::test]
async fn a_worker_that_cannot_start_hears_the_stop() {
    let bad = every_store().await.remove(0);
    bad.store.fails(Fault::Hangs);
    let worker = Steps::default().handle(Worker::new(&bad.mill));
    let report = worker.run(bad.store.called(Verb::Queues, 1)).await.unwrap();
    assert_eq!(report.done, 0);
}
