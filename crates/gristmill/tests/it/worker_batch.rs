//! Handlers over batches, handlers that say more than done or error, and what
//! a handler knows.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::port::Backoff;
use gristmill::worker::{BatchContext, Outcome, Typed, When, Worker, fail, release_for, retry_in};
use gristmill::{Put, TaskState};

use crate::{Mail, mills, until};

async fn never() {
    std::future::pending().await
}

const AT_ONCE: Backoff =
    Backoff { base: Duration::from_millis(1), cap: Duration::from_millis(1), jitter: false };

#[tokio::test]
async fn a_batch_handler_settles_some_and_its_return_the_rest() {
    for (mill, _folder) in mills().await {
        mill.put_all((0..10).map(Mail::to)).run().await.unwrap();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = sizes.clone();
        let report = Worker::new(&mill)
            .handle_batch(move |mails: Vec<Typed<Mail>>, batch: BatchContext| {
                seen.lock().unwrap().push(mails.len());
                async move {
                    for mail in &mails {
                        let id = mail.context.id;
                        match mail.to.as_str() {
                            "1" => assert!(batch.fail(id, "no such address")),
                            "2" => assert!(batch.retry(id, When::After(Duration::from_secs(60)))),
                            "3" => assert!(batch.done(id) && !batch.done(id)),
                            _ => {}
                        }
                    }
                    Ok::<(), String>(())
                }
            })
            .drain(true)
            .run(never())
            .await
            .unwrap();
        assert_eq!(*sizes.lock().unwrap(), [10]);
        assert_eq!((report.done, report.not_done), (8, 2));
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.failed, stats.delayed, stats.processing), (1, 1, 0));
    }
}

#[tokio::test]
async fn a_task_with_a_timeout_of_its_own_comes_by_itself() {
    for (mill, _folder) in mills().await {
        let puts = (0..5).map(|n| {
            let put = Put::of(Mail::to(n));
            if n == 2 { put.timeout(Duration::from_secs(7)) } else { put }
        });
        mill.put_all(puts).run().await.unwrap();
        let batches = Arc::new(Mutex::new(Vec::new()));
        let seen = batches.clone();
        Worker::new(&mill)
            .handle_batch(move |mails: Vec<Typed<Mail>>, batch: BatchContext| {
                seen.lock().unwrap().push((mails.len(), batch.timeout.as_secs()));
                async { Ok::<(), String>(()) }
            })
            .drain(true)
            .run(never())
            .await
            .unwrap();
        assert_eq!(*batches.lock().unwrap(), [(2, 900), (1, 7), (2, 900)]);
    }
}

#[tokio::test]
async fn what_a_failed_batch_leaves_open_comes_back_one_by_one() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().with(|s| s.backoff = Some(AT_ONCE)).await.unwrap();
        mill.put_all((0..5).map(Mail::to)).run().await.unwrap();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = sizes.clone();
        let worker = Worker::new(&mill).handle_batch(
            move |mails: Vec<Typed<Mail>>, batch: gristmill::worker::BatchContext| {
                seen.lock().unwrap().push(mails.len());
                async move {
                    if mails.len() > 1 {
                        batch.done(mails[0].context.id);
                        return Err("one of them is bad".to_owned());
                    }
                    assert_eq!(mails[0].context.attempt, 2);
                    if mails[0].to == "3" { Ok(fail("bad")) } else { Ok(Outcome::Done) }
                }
            },
        );
        let handle = worker.start().await.unwrap();
        let all = || async { mill.inspect().queue("mails").await.unwrap() };
        until("all ended", async || all().await.counters.done >= 4 && all().await.failed >= 1)
            .await;
        // The store has it a moment before the worker counts it.
        until("the last count", async || handle.stats().queues[0].1.processed == 9).await;
        let stats = handle.stats().queues[0].1.clone();
        assert_eq!((stats.processed, stats.errors, stats.retried), (9, 5, 4));
        assert!(stats.duration > Duration::ZERO, "{stats:?}");
        assert_eq!(stats.last_error.as_deref(), Some("bad"));
        handle.stop().await.unwrap();
        assert_eq!(*sizes.lock().unwrap(), [5, 1, 1, 1, 1]);
    }
}

#[tokio::test]
async fn handlers_say_retry_fail_and_release() {
    for (mill, _folder) in mills().await {
        mill.put_all(["retry", "fail", "release", "done", "error"].map(Mail::to))
            .run()
            .await
            .unwrap();
        let failed = Arc::new(Mutex::new(Vec::new()));
        let told = failed.clone();
        Worker::new(&mill)
            .handle(|mail: Mail| async move {
                let minute = Duration::from_secs(60);
                match mail.to.as_str() {
                    "retry" => Ok(retry_in(minute)),
                    "fail" => Ok(fail("never")),
                    "release" => Ok(release_for(minute)),
                    "done" => Ok(Outcome::Done),
                    _ => Err("an error"),
                }
            })
            .on_failed(move |f| {
                told.lock().unwrap().push((f.queue.to_string(), f.task.id, f.error.to_owned()));
            })
            .drain(true)
            .run(never())
            .await
            .unwrap();
        let request = gristmill::port::ListRequest { limit: 10, ..Default::default() };
        let tasks = mill.inspect().list(request).await.unwrap().tasks;
        let stand: Vec<_> = tasks.iter().map(|t| (t.state, t.attempts)).collect();
        let (pending, over) = (TaskState::Pending, TaskState::Failed);
        assert_eq!(stand, [(pending, 1), (over, 1), (pending, 0), (pending, 1)]);
        let failed = failed.lock().unwrap();
        assert_eq!(*failed, [("mails".to_owned(), tasks[1].id, "never".to_owned())]);
    }
}

#[tokio::test]
async fn a_handler_knows_everything_about_its_attempt() {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>()
            .with(|s| {
                s.slots = Some(Some(2));
                s.backoff = Some(AT_ONCE);
            })
            .await
            .unwrap();
        mill.put(Mail::to("x"))
            .key("k")
            .group("g")
            .source("s")
            .traceparent(trace)
            .traceparent("nonsense")
            .await
            .unwrap();
        let ran = Arc::new(Mutex::new(0));
        let count = ran.clone();
        let worker = Worker::new(&mill).handle(move |_: Mail, context: gristmill::Context| {
            let count = count.clone();
            async move {
                let first = context.attempt == 1;
                *count.lock().unwrap() += 1;
                assert_eq!((context.key(), context.group()), (Some("k"), Some("g")));
                assert_eq!((context.source(), context.traceparent()), (Some("s"), Some(trace)));
                assert_eq!((context.concurrent, context.slot), (Some(0), Some(0)));
                assert_eq!(context.returns() + 1, context.claims);
                assert_eq!(context.prev_run_at.is_none(), first);
                assert!(context.deadline > Instant::now() && !context.is_cancelled());
                if first { Err("again") } else { Ok(()) }
            }
        });
        let handle = worker.start().await.unwrap();
        until("two runs", async || *ran.lock().unwrap() >= 2).await;
        let report = handle.stop().await.unwrap();
        assert_eq!((report.done, report.not_done), (1, 1));
    }
}

#[tokio::test]
async fn an_effect_and_its_completion_are_one_transaction() {
    let (mill, folder) = mills().await.pop().unwrap();
    let path = folder.path().join("test.db");
    let open = move || gristmill::sqlite::rusqlite::Connection::open(&path).unwrap();
    open().execute_batch("CREATE TABLE sent (id INTEGER PRIMARY KEY)").unwrap();
    mill.put_all((0..20).map(Mail::to)).run().await.unwrap();
    let connect = open.clone();
    let report = Worker::new(&mill)
        .handle(move |_: Mail, context: gristmill::Context| {
            let connect = connect.clone();
            async move {
                let mut connection = connect();
                let transaction = connection.transaction().map_err(|e| e.to_string())?;
                let id = context.id.0;
                transaction
                    .execute("INSERT INTO sent VALUES (?)", [id])
                    .map_err(|e| e.to_string())?;
                let guard = context.complete_in(&transaction).now().map_err(|e| e.to_string())?;
                transaction.commit().map_err(|e| e.to_string())?;
                guard.committed();
                Ok::<(), String>(())
            }
        })
        .drain(true)
        .run(never())
        .await
        .unwrap();
    assert_eq!((report.gone, report.done, report.not_done), (20, 0, 0));
    assert_eq!(mill.inspect().queue("mails").await.unwrap().total(), 0);
    let sent: i64 = open().query_row("SELECT count(*) FROM sent", [], |row| row.get(0)).unwrap();
    assert_eq!(sent, 20);
}
