//! Checkpoints and steps: what a handler keeps is there when it runs again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::port::{Action, Operation, Selection};
use gristmill::testing::TestMill;
use gristmill::worker::Worker;
use gristmill::{Backoff, Context, Error, Mill, TaskId, TaskState};
use serde::{Deserialize, Serialize};

use crate::{Mail, mills};

const AT_ONCE: Backoff = Backoff { base: Duration::ZERO, cap: Duration::ZERO, jitter: false };

async fn never() {
    std::future::pending().await
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Cursor {
    page: u32,
    seen: Vec<String>,
}

#[tokio::test]
async fn the_next_attempt_goes_on_where_the_last_one_was() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().backoff(AT_ONCE).await.unwrap();
        mill.put(Mail::to("x")).await.unwrap();
        let began = Arc::new(Mutex::new(Vec::new()));
        let seen = began.clone();
        let import = move |_: Mail, context: Context| {
            let began = began.clone();
            async move {
                let cursor: Option<Cursor> = context.resume()?;
                let mut cursor = cursor.unwrap_or(Cursor { page: 1, seen: Vec::new() });
                began.lock().unwrap().push(cursor.page);
                while cursor.page < 7 {
                    cursor.seen.push(format!("page {}", cursor.page));
                    cursor.page += 1;
                    context.checkpoint(&cursor).await?;
                    if cursor.page.is_multiple_of(3) {
                        return Err("the network is down".into());
                    }
                }
                assert_eq!(cursor.seen.len(), 6);
                Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
            }
        };
        let report = Worker::new(&mill).handle(import).drain(true).run(never()).await.unwrap();
        assert_eq!((report.done, report.not_done), (1, 2));
        assert_eq!(*seen.lock().unwrap(), [1, 3, 6]);
        assert_eq!(mill.inspect().queue("mails").await.unwrap().total(), 0);
    }
}

#[tokio::test]
async fn a_step_runs_once_over_all_attempts() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().backoff(AT_ONCE).await.unwrap();
        mill.put(Mail::to("x")).await.unwrap();
        let (charged, sent) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (charges, sends) = (charged.clone(), sent.clone());
        let order = move |_: Mail, context: Context| {
            let (charges, sends) = (charges.clone(), sends.clone());
            async move {
                let charge = async || Ok::<_, String>(charges.fetch_add(1, Ordering::SeqCst) + 100);
                let receipt = context.step("charge", charge).await?;
                assert_eq!(context.step("charge", charge).await?, receipt, "in one attempt too");
                let send = async || match sends.fetch_add(1, Ordering::SeqCst) {
                    0 | 1 => Err("nobody answers"),
                    _ => Ok(format!("sent {receipt}")),
                };
                assert_eq!(context.step("send", send).await?, "sent 100");
                Ok::<(), Error>(())
            }
        };
        let report = Worker::new(&mill).handle(order).drain(true).run(never()).await.unwrap();
        assert_eq!((report.done, report.not_done), (1, 2));
        assert_eq!(charged.load(Ordering::SeqCst), 1, "once over all attempts");
        assert_eq!(sent.load(Ordering::SeqCst), 3, "what fails is not kept");
    }
}

async fn retried(mill: &Mill, id: TaskId, action: Action) {
    let selection = Selection::Ids(vec![id]);
    let by = "test".to_owned();
    let operation = Operation {
        action,
        selection,
        limit: 1,
        by,
        note: None,
        start: gristmill::port::Start::Now,
    };
    assert_eq!(mill.store().operate(operation).await.unwrap().moved(), 1);
}

#[tokio::test]
async fn a_type_that_no_longer_fits_is_said_and_a_fresh_retry_begins_anew() {
    let mill = TestMill::new();
    mill.declare::<Mail>().max_attempts(1).await.unwrap();
    let id = mill.put(Mail::to("x")).await.unwrap().id();
    let older = Worker::new(&mill).handle(|_: Mail, context: Context| async move {
        context.checkpoint("page seven").await?;
        context.step("charge", async || Ok::<_, String>("a text".to_owned())).await?;
        Err::<(), Error>(Error::LeaseLost)
    });
    mill.run_until_idle(&older).await.unwrap();
    let newer = Worker::new(&mill).handle(|_: Mail, context: Context| async move {
        let charged = context.step("charge", async || Ok::<u32, String>(7)).await;
        let error = context.resume::<Cursor>().err().map(|error| error.to_string());
        match (charged, error) {
            (Ok(7), None) => Ok(()),
            (charged, error) => Err(format!("{charged:?} and {error:?}")),
        }
    });
    retried(&mill, id, Action::Retry).await;
    mill.run_until_idle(&newer).await.unwrap();
    let failed = mill.inspect().task(id).await.unwrap().unwrap();
    let error = failed.error.clone().unwrap();
    for part in ["cannot be read as", "Cursor", "page seven", "step 'charge'", "retry --fresh"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(failed.checkpoint.is_some(), "it stays, for who can read it");
    retried(&mill, id, Action::RetryFresh).await;
    assert_eq!(mill.run_until_idle(&newer).await.unwrap().done, 1);
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_the_one_before_stays() {
    let mill = TestMill::new();
    mill.declare::<Mail>().max_attempts(1).await.unwrap();
    let id = mill.put(Mail::to("x")).await.unwrap().id();
    let worker = Worker::new(&mill).handle(|_: Mail, context: Context| async move {
        context.checkpoint("small").await?;
        let large = context.checkpoint(&"x".repeat(64 << 10)).await;
        assert!(
            matches!(&large, Err(Error::Checkpoint(why)) if why.contains("65536")),
            "{large:?}"
        );
        context.step("next", async || Ok::<_, String>(1)).await?;
        Err::<(), Error>(Error::LeaseLost)
    });
    mill.run_until_idle(&worker).await.unwrap();
    let task = mill.inspect().task(id).await.unwrap().unwrap();
    let kept = String::from_utf8(task.checkpoint.unwrap().to_vec()).unwrap();
    assert_eq!(kept, r#"{"state":"small","steps":{"next":1}}"#);
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_keeps_nothing() {
    let mill = TestMill::new();
    mill.declare::<Mail>().lease(Duration::from_secs(60)).await.unwrap();
    let id = mill.put(Mail::to("x")).await.unwrap().id();
    let clock = mill.clock().clone();
    let store = mill.store();
    let worker = Worker::new(&mill).handle(move |_: Mail, context: Context| {
        let (clock, store) = (clock.clone(), store.clone());
        async move {
            context.checkpoint("mine").await?;
            if context.attempt == 1 {
                clock.advance(Duration::from_secs(61));
                store.reclaim().await?;
                let late = context.checkpoint("too late").await;
                assert!(matches!(late, Err(Error::LeaseLost)), "{late:?}");
            }
            Err::<(), Error>(Error::LeaseLost)
        }
    });
    mill.run_until_idle(&worker).await.unwrap();
    let task = mill.inspect().task(id).await.unwrap().unwrap();
    assert_eq!(task.state, TaskState::Pending);
    assert_eq!(task.checkpoint.as_deref(), Some(&br#"{"state":"mine"}"#[..]));
}
