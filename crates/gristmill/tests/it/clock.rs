//! Workers, schedulers and managers on a clock that the test moves: what time
//! decides in them happens when the clock says so, and not before.

use std::sync::Arc;
use std::time::Duration;

use gristmill::manager::{Manager, ManagerLook};
use gristmill::port::Clock;
use gristmill::schedule::{FIRE_HEADER, Missed};
use gristmill::testing::{Fault, Faulty, ManualClock, Verb};
use gristmill::worker::{Context, Worker};
use gristmill::{Mill, Timestamp};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::faulty::{Bad, every_store, side_by_side};
use crate::schedule::timed;
use crate::{Mail, ticking, until};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// A worker on the clock whose handler runs until it is cancelled (but not for
/// "quick"), and what it tells.
struct Timed {
    clock: Arc<ManualClock>,
    begun: Arc<Notify>,
    cancelled: mpsc::UnboundedReceiver<Duration>,
}

impl Timed {
    fn new(mill: &Mill) -> (Self, Worker) {
        let (clock, begun) = (Arc::new(ManualClock::default()), Arc::new(Notify::new()));
        let (told, cancelled) = mpsc::unbounded_channel();
        let (begins, time) = (begun.clone(), clock.clone());
        let worker = Worker::new(mill).clock(clock.clone());
        let worker = worker.handle(move |mail: Mail, context: Context| {
            let (begins, time, told) = (begins.clone(), time.clone(), told.clone());
            async move {
                if mail.to == "quick" {
                    return Ok(());
                }
                begins.notify_one();
                context.cancelled().await;
                let _ = told.send(time.monotonic());
                Err::<(), _>("stopped")
            }
        });
        (Timed { clock, begun, cancelled }, worker)
    }

    /// Returns when whoever slept until now has had a turn; takes some seconds by
    /// the clock.
    async fn looks(&self, store: &Faulty) {
        let next = store.calls(Verb::Sweep) + 1;
        let swept = async || store.calls(Verb::Sweep) >= next;
        ticking(&self.clock, Duration::from_millis(100), "a look", swept).await;
    }
}

#[tokio::test]
async fn a_timeout_passes_when_the_clock_does() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        mill.declare::<Mail>().with(|s| s.timeout = Some(HOUR)).lease(10 * HOUR).await.unwrap();
        let id = mill.put(Mail::to("a")).await.unwrap().id();
        let (mut t, worker) = Timed::new(&mill);
        let worker = worker.start().await.unwrap();
        t.begun.notified().await;
        t.clock.advance(HOUR - MINUTE);
        t.looks(&store).await;
        assert!(t.cancelled.try_recv().is_err());
        t.clock.advance(HOUR - t.clock.monotonic());
        assert_eq!(t.cancelled.recv().await, Some(HOUR));
        until("it is told", async || worker.stats().report.not_done == 1).await;
        worker.stop().await.unwrap();
        let error = mill.inspect().task(id).await.unwrap().unwrap().error.unwrap();
        assert!(error.contains("timed out"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_tasks_own_timeout_passes_before_its_queues() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, .. } = bad;
        mill.declare::<Mail>().lease(10 * HOUR).with(|s| s.timeout = Some(HOUR)).await.unwrap();
        // Of one claim: when the first begins, the queue's timeout is waited for.
        mill.put(Mail::to("quick")).priority(-1).await.unwrap();
        let limit = Duration::from_secs(1);
        let id = mill.put(Mail::to("own")).timeout(limit).await.unwrap().id();
        let (mut t, worker) = Timed::new(&mill);
        let worker = worker.start().await.unwrap();
        t.begun.notified().await;
        t.clock.advance(limit);
        let told = tokio::time::timeout(MINUTE, t.cancelled.recv()).await;
        assert_eq!(told.expect("it is told in time"), Some(limit));
        until("it is told", async || worker.stats().report.not_done == 1).await;
        worker.stop().await.unwrap();
        let error = mill.inspect().task(id).await.unwrap().unwrap().error.unwrap();
        assert_eq!(error, "timed out after 1s");
    })
    .await;
}

#[tokio::test]
async fn a_tasks_own_timeout_may_be_longer_than_its_queues() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        mill.declare::<Mail>().lease(10 * HOUR).with(|s| s.timeout = Some(MINUTE)).await.unwrap();
        mill.put(Mail::to("own")).timeout(HOUR).await.unwrap();
        let (mut t, worker) = Timed::new(&mill);
        let worker = worker.stop_within(Duration::ZERO).start().await.unwrap();
        t.begun.notified().await;
        t.clock.advance(HOUR - MINUTE);
        t.looks(&store).await;
        assert!(t.cancelled.try_recv().is_err(), "its queue's minute is long over");
        t.clock.advance(HOUR - t.clock.monotonic());
        assert_eq!(t.cancelled.recv().await, Some(HOUR));
        worker.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_heartbeat_is_sent_when_the_clock_says_so() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        mill.declare::<Mail>().lease(HOUR).with(|s| s.timeout = Some(HOUR)).await.unwrap();
        mill.put(Mail::to("a")).await.unwrap();
        let (mut t, worker) = Timed::new(&mill);
        let worker = worker.stop_within(Duration::ZERO).start().await.unwrap();
        t.begun.notified().await;
        // A quarter of the lease is not over yet.
        t.clock.advance(14 * MINUTE);
        t.looks(&store).await;
        assert_eq!(store.calls(Verb::Extend), 0);
        let step = Duration::from_secs(5);
        ticking(&t.clock, step, "a heartbeat", async || store.calls(Verb::Extend) == 1).await;
        assert!(t.clock.monotonic() >= 15 * MINUTE);
        assert!(t.cancelled.try_recv().is_err());
        worker.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_patience_of_a_stop_lasts_as_long_as_the_clock_says() {
    side_by_side(every_store().await, |bad| async move {
        bad.mill.declare::<Mail>().with(|s| s.timeout = Some(10 * HOUR)).await.unwrap();
        bad.mill.put(Mail::to("a")).await.unwrap();
        let (mut t, worker) = Timed::new(&bad.mill);
        let worker = Arc::new(worker.lease(10 * HOUR).stop_within(HOUR).start().await.unwrap());
        t.begun.notified().await;
        let stopping = tokio::spawn({
            let worker = worker.clone();
            async move { worker.stop().await }
        });
        let mut cancelled = None;
        ticking(&t.clock, MINUTE, "a cancel", async || {
            cancelled = t.cancelled.try_recv().ok();
            cancelled.is_some()
        })
        .await;
        let (least, most) = (Some(HOUR), Some(5 * HOUR));
        assert!(cancelled >= least && cancelled < most, "{cancelled:?}");
        stopping.await.unwrap().unwrap();
    })
    .await;
}

/// A store that refuses is asked again when the clock has moved, and only then.
#[tokio::test]
async fn a_worker_waits_by_the_clock_for_a_store_that_refuses() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        let (t, worker) = Timed::new(&mill);
        mill.put(Mail::to("a")).await.unwrap();
        store.fails_at(&[Verb::Claim], Fault::Refuses);
        let worker = worker.stop_within(Duration::ZERO).start().await.unwrap();
        let asked = async || store.calls(Verb::Claim) >= 10;
        ticking(&t.clock, Duration::from_secs(1), "ten claims", asked).await;
        // The pauses between them grow to some seconds each.
        let took = t.clock.monotonic();
        assert!(took > Duration::from_secs(5) && took < 10 * MINUTE, "{took:?}");
        store.heal();
        t.clock.advance(MINUTE);
        t.begun.notified().await;
        worker.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_scheduler_fires_when_the_clock_says_so() {
    for t in timed().await {
        let every = t.mill.schedule("s").every(HOUR).missed(Missed::All).puts(Mail::to("a"));
        let (stop, stopped) = oneshot::channel::<()>();
        let scheduler = t.scheduler().schedule(every);
        let running = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
        ticking(&t.clock, 10 * MINUTE, "three fires", async || t.tasks().await.len() >= 3).await;
        assert!(t.clock.monotonic() < 24 * HOUR, "{:?}", t.clock.monotonic());
        drop(stop);
        let report = running.await.unwrap().unwrap();
        let tasks = t.tasks().await;
        assert!(report.fired >= 3 && report.fired <= tasks.len() as u64, "{report:?}");
        let instants: Vec<Timestamp> =
            tasks.iter().map(|task| task.headers[FIRE_HEADER].parse().unwrap()).collect();
        for pair in instants.windows(2) {
            assert_eq!(pair[1].since(pair[0]), HOUR, "{instants:?}");
        }
    }
}

#[tokio::test]
async fn a_manager_decides_when_the_clock_says_so() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        let clock = Arc::new(ManualClock::default());
        let manager = Manager::new(&mill).clock(clock.clone()).every(Duration::from_secs(5));
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(manager.run(async move { stopped.await.unwrap_or_default() }));
        store.called(Verb::PublishAssignment, 1).await;
        let looks = || store.calls(Verb::PublishAssignment);
        ticking(&clock, Duration::from_secs(1), "three looks", async || looks() >= 3).await;
        let took = clock.monotonic();
        assert!(took >= Duration::from_secs(10) && took < 10 * MINUTE, "{took:?}");
        drop(stop);
        running.await.unwrap().unwrap();
        let look = Manager::new(&mill).look().await.unwrap();
        assert!(matches!(look, ManagerLook::Leads { term: 2, .. }), "{look:?}");
    })
    .await;
}
