//! The worker: what becomes of tasks whose handlers succeed, fail, panic,
//! hang, block, or are stopped.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::port::Backoff;
use gristmill::testing::{Faulty, Verb};
use gristmill::worker::Worker;
use gristmill::{Mill, Payload, Put, TaskState, TaskType};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

use crate::{Mail, first_lease_end, mills, until_though_blocked};

async fn never() {
    std::future::pending().await
}

#[derive(Serialize, Deserialize)]
struct After(String);

impl TaskType for After {
    const QUEUE: &'static str = "after";
}

#[tokio::test]
async fn done_tasks_are_gone_and_their_follow_ups_stand() {
    for (mill, _folder) in mills().await {
        mill.declare::<After>().await.unwrap();
        for n in 0..20 {
            mill.put(Mail::to(n)).await.unwrap();
        }
        let report = Worker::new(&mill)
            .handle(|mail: Mail, context: gristmill::Context| async move {
                context.follow_up(After(mail.to)).map_err(|e| e.to_string())
            })
            .processors(3)
            .drain(true)
            .run(never())
            .await
            .unwrap();
        assert_eq!(report.done, 20);
        assert_eq!(mill.inspect().queue("mails").await.unwrap().total(), 0);
        assert_eq!(mill.inspect().queue("after").await.unwrap().ready, 20);
    }
}

/// Both or neither: the work that was not put must not be lost with its cause.
#[tokio::test]
async fn a_task_whose_follow_up_is_refused_is_not_done() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().with(|s| s.max_attempts = Some(Some(1))).await.unwrap();
        for to in ["nobody", "large", "fine"] {
            mill.put(Mail::to(to)).await.unwrap();
        }
        let failed = Arc::new(Mutex::new(Vec::new()));
        let told = failed.clone();
        let worker = Worker::new(&mill)
            .handle(|mail: Mail, context: gristmill::Context| async move {
                let next = match mail.to.as_str() {
                    "fine" => return Ok(()),
                    "nobody" => Put::raw("nobody", Payload::default()),
                    _ => Put::raw("mails", Payload::raw(vec![0; 2 << 20])),
                };
                context.follow_up(next).map_err(|e| e.to_string())
            })
            .on_failed(move |failed| told.lock().unwrap().push(failed.error.to_owned()))
            .drain(true);
        let report = worker.run(never()).await.unwrap();
        assert_eq!((report.done, report.not_done, report.follow_ups_refused), (1, 2, 2));
        let mut failed = failed.lock().unwrap().clone();
        failed.sort();
        let large = "the payload has 2097152 bytes and 1048576 are allowed";
        let said = [
            format!("the follow-up to 'mails' was refused: {large}"),
            "the follow-up to 'nobody' was refused: there is no queue 'nobody'".to_owned(),
        ];
        assert_eq!(failed, said, "whoever asked is told why");
        let queue = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((queue.failed, queue.counters.done), (2, 1));
    }
}

#[tokio::test]
async fn errors_and_panics_are_attempts_and_end_in_failed() {
    for (mill, _folder) in mills().await {
        let quick = Backoff {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(1),
            jitter: false,
        };
        mill.declare::<Mail>()
            .with(|s| {
                s.max_attempts = Some(Some(3));
                s.backoff = Some(quick);
            })
            .await
            .unwrap();
        mill.put(Mail::to("error")).await.unwrap();
        mill.put(Mail::to("panic")).await.unwrap();
        let (failed, both) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let (count, tell) = (failed.clone(), both.clone());
        Worker::new(&mill)
            .handle(move |mail: Mail| {
                let (count, tell) = (count.clone(), tell.clone());
                async move {
                    if count.fetch_add(1, Ordering::SeqCst) == 5 {
                        tell.notify_one();
                    }
                    assert_ne!(mail.to, "panic", "on purpose");
                    Err::<(), _>("on purpose as well")
                }
            })
            .run(async move { both.notified().await })
            .await
            .unwrap();
        let failed = mill.inspect().failed(Some("mails"), 10).await.unwrap();
        assert_eq!(failed.len(), 2);
        for task in failed {
            assert_eq!((task.state, task.attempts, task.history.len()), (TaskState::Failed, 3, 3));
            let error = task.error.unwrap();
            assert!(error.contains("on purpose"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_hung_handler_ends_as_timed_out() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>()
            .with(|s| {
                s.timeout = Some(Duration::from_millis(50));
                s.max_attempts = Some(Some(1));
            })
            .await
            .unwrap();
        mill.put(Mail::to("x")).await.unwrap();
        Worker::new(&mill)
            .handle(|_: Mail, context: gristmill::Context| async move {
                context.cancelled().await;
                Err::<(), _>("stopped")
            })
            .drain(true)
            .run(never())
            .await
            .unwrap();
        let failed = mill.inspect().failed(None, 1).await.unwrap();
        assert!(failed[0].error.as_ref().unwrap().contains("timed out"), "{failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_leases() {
    for (mill, _folder) in mills().await {
        let lease = Duration::from_millis(200);
        mill.declare::<Mail>().with(|s| s.lease = Some(lease)).await.unwrap();
        for n in 0..2 {
            mill.put(Mail::to(n)).await.unwrap();
        }
        let (release, blocks) = std::sync::mpsc::channel::<()>();
        let blocks = Arc::new(Mutex::new(blocks));
        let worker = Worker::new(&mill)
            .handle(move |_: Mail| {
                let blocks = blocks.clone();
                async move {
                    // On a thread of the runtime: the worst a handler can do.
                    let _ = blocks.lock().unwrap().recv();
                    Ok::<(), String>(())
                }
            })
            .processors(2)
            .batch(1)
            .drain(true)
            .start()
            .await
            .unwrap();
        let processing = async || mill.inspect().queue("mails").await.unwrap().processing;
        until_though_blocked("both run", async || processing().await == 2).await;
        let first = first_lease_end(&mill).await.unwrap();
        until_though_blocked("ten leases", async || {
            let end = first_lease_end(&mill).await;
            end.is_some_and(|end| end.since(first) >= lease * 10)
        })
        .await;
        drop(release);
        let report = worker.ended().await.unwrap();
        assert_eq!((report.done, report.lease_lost), (2, 0));
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.counters.claimed, stats.counters.expired), (2, 0));
    }
}

#[tokio::test]
async fn a_stop_lets_the_running_finish_and_gives_the_rest_back() {
    for (mill, _folder) in mills().await {
        for n in 0..50 {
            mill.put(Mail::to(n)).await.unwrap();
        }
        let (started, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, wait) = (started.clone(), go.clone());
        let ran = Arc::new(AtomicU32::new(0));
        let count = ran.clone();
        let worker = Worker::new(&mill).handle(move |_: Mail| {
            let (tell, wait, count) = (tell.clone(), wait.clone(), count.clone());
            async move {
                // The fourth is caught in the middle by the stop.
                if count.fetch_add(1, Ordering::SeqCst) == 3 {
                    tell.notify_one();
                    wait.notified().await;
                }
                Ok::<(), String>(())
            }
        });
        let running = tokio::spawn(worker.run(async { drop(stopped.await) }));
        started.notified().await;
        stop.send(()).unwrap();
        go.notify_one();
        let report = running.await.unwrap().unwrap();
        assert_eq!(report.done, 4);
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.ready, stats.processing), (46, 0));
        // Whatever was claimed and not started has its attempt back.
        let request = gristmill::port::ListRequest { limit: 100, ..Default::default() };
        let page = mill.inspect().list(request).await.unwrap();
        assert!(page.tasks.iter().all(|task| task.attempts == 0));
    }
}

#[tokio::test]
async fn an_unknown_queue_is_an_error_at_the_start() {
    for (mill, _folder) in mills().await {
        let worker = Worker::new(&mill).handle(|_: After| async { Ok::<(), String>(()) });
        let error = worker.run(never()).await.unwrap_err();
        assert!(error.to_string().contains("no queue 'after'"), "{error}");
    }
}

/// Another task of the same queue.
#[derive(Serialize, Deserialize)]
struct Letter {}

impl TaskType for Letter {
    const QUEUE: &'static str = Mail::QUEUE;
}

#[tokio::test]
async fn two_handlers_on_one_queue_are_an_error_that_names_both() {
    for (mill, _folder) in mills().await {
        mill.put(Mail::to("ada")).await.unwrap();
        let worker = Worker::new(&mill)
            .drain(true)
            .handle(|_: Mail| async { Ok::<(), String>(()) })
            .handle(|_: Letter| async { Ok::<(), String>(()) });
        let said = worker.start().await.map(drop).expect_err("refused").to_string();
        for part in ["'mails'", "Mail", "Letter", "one enum"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, 1, "nobody took it");
    }
}

/// One claim finds the task and one finds nothing more: what comes meanwhile ends the
/// wait that follows, so that nobody has to look again to be sure.
#[tokio::test]
async fn an_idle_worker_claims_twice_a_task() {
    let store = Faulty::over(Mill::open("memory:").await.unwrap().store());
    let mill = Mill::over(store.clone());
    mill.declare::<Mail>().await.unwrap();
    let worker =
        Worker::new(&mill).handle(|_: Mail| async { Ok::<(), String>(()) }).start().await.unwrap();
    store.called(Verb::Wait, 1).await;
    assert_eq!(store.calls(Verb::Claim), 1);
    for number in 1..=5 {
        mill.put(Mail::to(number)).await.unwrap();
        store.called(Verb::Wait, number + 1).await;
        assert_eq!(store.calls(Verb::Claim), 1 + 2 * number);
    }
    worker.stop().await.unwrap();
}
