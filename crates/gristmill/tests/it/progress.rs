//! How far handlers are: said as often as they like, told at most once a second.

use std::sync::Arc;
use std::time::Duration;

use gristmill::port::Clock;
use gristmill::testing::{Fault, ManualClock, Verb};
use gristmill::worker::{Context, Worker, WorkerHandle};
use gristmill::{Backoff, TaskId};
use tokio::sync::{Notify, Semaphore};

use crate::faulty::{Bad, every_store, side_by_side};
use crate::{Mail, ticking};

const STEP: Duration = Duration::from_millis(100);
const LEASE: Duration = Duration::from_secs(600);
const AT_ONCE: Backoff = Backoff { base: Duration::ZERO, cap: Duration::ZERO, jitter: false };

/// How far the first task is.
async fn said(bad: &Bad) -> Option<String> {
    let task = bad.well().inspect().task(TaskId(1)).await.unwrap()?;
    Some(task.lease?.progress?.progress.to_string())
}

/// A worker on a clock of the test's, and the ends of its handlers.
struct Site {
    bad: Bad,
    clock: Arc<ManualClock>,
    worker: WorkerHandle,
}

impl Site {
    async fn with<F: Future<Output = Result<(), String>> + Send + 'static>(
        bad: Bad,
        handler: impl Fn(Context) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        bad.mill.declare::<Mail>().lease(LEASE).backoff(AT_ONCE).await.unwrap();
        bad.mill.put(Mail::to("a")).await.unwrap();
        let clock = Arc::new(ManualClock::default());
        let worker = Worker::new(&bad.mill)
            .clock(clock.clone())
            .handle(move |_: Mail, context: Context| handler(context))
            .start()
            .await
            .unwrap();
        Site { bad, clock, worker }
    }

    async fn until(&self, what: &str, holds: impl AsyncFnMut() -> bool) {
        ticking(&self.clock, STEP, what, holds).await;
    }
}

#[tokio::test]
async fn it_is_seen_within_seconds_and_told_at_most_once_a_second() {
    side_by_side(every_store().await, |bad| async move {
        let end = Arc::new(Notify::new());
        let ended = end.clone();
        let site = Site::with(bad, move |context: Context| {
            let ended = ended.clone();
            async move {
                let mut done = 0;
                loop {
                    for _ in 0..1_000 {
                        done += 1;
                        context.progress(done, None, "rows");
                    }
                    tokio::select! {
                        biased;
                        () = ended.notified() => return Ok(()),
                        () = tokio::task::yield_now() => {}
                    }
                }
            }
        })
        .await;
        let calls = || site.bad.store.calls(Verb::Extend);
        site.until("it is seen", async || said(&site.bad).await.is_some()).await;
        let first = site.clock.monotonic();
        // The lease is extended every two and a half minutes; this waits for no beat.
        assert!(first < Duration::from_secs(5), "{first:?}");
        let told = calls();
        site.until("it is told again and again", async || calls() >= told + 4).await;
        let took = site.clock.monotonic() - first;
        assert!(took >= Duration::from_secs(3), "four times in {took:?}");
        end.notify_one();
        let gone = async || site.bad.well().inspect().task(TaskId(1)).await.unwrap().is_none();
        site.until("it is done", gone).await;
        site.worker.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn who_says_nothing_costs_nothing() {
    side_by_side(every_store().await, |bad| async move {
        let end = Arc::new(Semaphore::new(0));
        let ended = end.clone();
        let site = Site::with(bad, move |_| {
            let ended = ended.clone();
            async move { ended.acquire().await.map(drop).map_err(|e| e.to_string()) }
        })
        .await;
        let sweeps = || site.bad.store.calls(Verb::Sweep);
        let (before, since) = (sweeps(), site.clock.monotonic());
        let minute = since + Duration::from_secs(60);
        let passed = async || sweeps() > before + 3 && site.clock.monotonic() > minute;
        site.until("a minute passes", passed).await;
        assert_eq!(site.bad.store.calls(Verb::Extend), 0);
        end.add_permits(1);
        site.worker.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_the_store_did_not_hear_is_told_again() {
    side_by_side(every_store().await, |bad| async move {
        let (go, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (goes, ended) = (go.clone(), end.clone());
        let site = Site::with(bad, move |context: Context| {
            let (goes, ended) = (goes.clone(), ended.clone());
            async move {
                goes.notified().await;
                context.progress(3, 4, "once");
                ended.notified().await;
                Ok(())
            }
        })
        .await;
        site.bad.store.fails_at(&[Verb::Extend], Fault::Refuses);
        go.notify_one();
        let calls = || site.bad.store.calls(Verb::Extend);
        site.until("it is refused", async || calls() >= 2).await;
        assert_eq!(said(&site.bad).await, None);
        site.bad.store.heal();
        let heard = async || said(&site.bad).await.as_deref() == Some("3/4 once");
        site.until("it is heard", heard).await;
        end.notify_one();
        site.worker.stop().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_next_attempt_begins_with_nothing_said() {
    side_by_side(every_store().await, |bad| async move {
        let (fail, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (fails, ended) = (fail.clone(), end.clone());
        let site = Site::with(bad, move |context: Context| {
            let (fails, ended) = (fails.clone(), ended.clone());
            async move {
                if context.attempt == 1 {
                    context.progress(1, 2, "first");
                    fails.notified().await;
                    // Said when nobody can be told any more.
                    context.progress(2, 2, "late");
                    return Err("no".to_owned());
                }
                ended.notified().await;
                context.progress(0, None, "second");
                ended.notified().await;
                Ok(())
            }
        })
        .await;
        let heard = |wanted: &'static str| {
            let bad = &site.bad;
            async move || said(bad).await.as_deref() == Some(wanted)
        };
        site.until("the first is heard", heard("1/2 first")).await;
        fail.notify_one();
        let again = async || {
            let task = site.bad.well().inspect().task(TaskId(1)).await.unwrap().unwrap();
            task.attempts == 2 && task.lease.is_some()
        };
        site.until("it runs again", again).await;
        let sweeps = site.bad.store.calls(Verb::Sweep);
        site.until("time passes", async || site.bad.store.calls(Verb::Sweep) > sweeps + 3).await;
        assert_eq!(said(&site.bad).await, None);
        end.notify_one();
        site.until("the second is heard", heard("second")).await;
        end.notify_one();
        site.worker.stop().await.unwrap();
    })
    .await;
}
