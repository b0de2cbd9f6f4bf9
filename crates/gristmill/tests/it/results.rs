//! Results: what a handler returns comes to whoever waits for its task, and to whoever
//! asks in time.

use std::time::{Duration, Instant};

use gristmill::port::{Action, Operation, Selection};
use gristmill::prelude::*;
use gristmill::worker::{BatchContext, Typed};
use gristmill::{Error, Mill, TaskId, TaskResult};
use serde::{Deserialize, Serialize};

use crate::mills;

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

#[derive(Debug, Serialize, Deserialize)]
struct Sum(Vec<u64>);

impl TaskType for Sum {
    const QUEUE: &'static str = "sums";

    fn key(&self) -> Option<String> {
        self.0.first().map(u64::to_string)
    }
}

async fn sum(Sum(all): Sum) -> Result<Json<u64>, String> {
    let sum = all.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
    Ok(Json(sum.ok_or("too large")?))
}

#[tokio::test]
async fn who_waits_gets_what_the_handler_returned() {
    for (mill, _folder) in mills().await {
        mill.declare::<Sum>().max_attempts(1).await.unwrap();
        let worker = Worker::new(&mill).handle(sum).start().await.unwrap();
        let waited = mill.put(Sum(vec![1, 2])).wait::<u64>(LONG).await.unwrap();
        assert_eq!(waited, TaskResult::Value(3));
        let failed = mill.put(Sum(vec![u64::MAX, 1])).wait::<u64>(LONG).await.unwrap();
        assert_eq!(failed, TaskResult::Failed("too large".to_owned()));
        // By its number, now and once more.
        let id = mill.put(Sum(vec![3])).wanted().await.unwrap().id();
        for _ in 0..2 {
            assert_eq!(mill.wait::<u64>(id, LONG).await.unwrap(), TaskResult::Value(3));
        }
        assert_eq!(mill.result::<u64>(id).await.unwrap().value(), Some(3));
        // Another type is an error that says so.
        match mill.result::<String>(id).await {
            Err(Error::Decode(why)) => assert!(why.to_string().contains("String"), "{why}"),
            other => panic!("it is no text: {other:?}"),
        }
        // Nobody asked for this one.
        let id = mill.put(Sum(vec![4])).await.unwrap().id();
        eventually(|| async { mill.inspect().task(id).await.unwrap().is_none() }).await;
        assert_eq!(mill.result::<u64>(id).await.unwrap(), TaskResult::NotKnown);
        worker.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_duplicate_waits_for_the_task_that_stands() {
    for (mill, _folder) in mills().await {
        mill.declare::<Sum>().await.unwrap();
        let first = mill.put(Sum(vec![1, 2])).await.unwrap().id();
        let waiting = mill.put(Sum(vec![1, 4])).wait::<u64>(LONG);
        let work = async {
            let wanted = || async {
                let endings = mill.store().endings(&[first]).await.unwrap();
                matches!(endings[0], gristmill::port::Ending::Open { wanted: true })
            };
            eventually(wanted).await;
            let drain = Worker::new(&mill).handle(sum).drain(true);
            drain.run(std::future::pending()).await.unwrap();
        };
        let (waited, ()) = tokio::join!(waiting, work);
        assert_eq!(waited.unwrap(), TaskResult::Value(3), "what the first one said");
    }
}

#[tokio::test]
async fn whoever_waits_too_short_is_told_and_may_ask_again() {
    for (mill, _folder) in mills().await {
        mill.declare::<Sum>().await.unwrap();
        let id = mill.put(Sum(vec![1])).wanted().await.unwrap().id();
        let none = Duration::ZERO;
        assert!(mill.wait::<u64>(id, none).await.unwrap().is_open());
        let short = Duration::from_millis(20);
        assert!(mill.put(Sum(vec![2])).wait::<u64>(short).await.unwrap().is_open());
        operate(&mill, Action::Cancel, id).await;
        assert_eq!(mill.wait::<u64>(id, LONG).await.unwrap(), TaskResult::Cancelled);
        assert_eq!(mill.wait::<u64>(TaskId(99), LONG).await.unwrap(), TaskResult::NotKnown);
    }
}

async fn operate(mill: &Mill, action: Action, id: TaskId) {
    let selection = Selection::Ids(vec![id]);
    let operation = Operation {
        action,
        selection,
        limit: 1,
        by: "ada".into(),
        note: None,
        start: gristmill::port::Start::Now,
    };
    assert_eq!(mill.store().operate(operation).await.unwrap().moved(), 1);
}

#[tokio::test]
async fn a_handler_without_a_value_and_one_with_too_much() {
    for (mill, _folder) in mills().await {
        mill.declare::<Sum>().await.unwrap();
        let handler = |Sum(all): Sum, context: Context| async move {
            assert!(context.is_wanted());
            match all.first() {
                Some(1) => Ok(()),
                Some(size) => context.result(&"x".repeat(usize::try_from(*size).unwrap())),
                None => Err(Error::LeaseLost),
            }
        };
        mill.put(Sum(vec![1])).wanted().await.unwrap();
        mill.put(Sum(vec![60_000])).wanted().await.unwrap();
        mill.put(Sum(vec![70_000])).max_attempts(1).wanted().await.unwrap();
        let drain = Worker::new(&mill).handle(handler).drain(true);
        drain.run(std::future::pending()).await.unwrap();
        let result = async |id| mill.result::<String>(TaskId(id)).await.unwrap();
        assert_eq!(result(1).await, TaskResult::Done);
        assert_eq!(result(2).await, TaskResult::Value("x".repeat(60_000)));
        let TaskResult::Failed(why) = result(3).await else { panic!("it is too large") };
        assert!(why.contains("70002 bytes and 65536 are allowed"), "{why}");
    }
}

#[tokio::test]
async fn each_task_of_a_batch_has_its_own() {
    for (mill, _folder) in mills().await {
        mill.declare::<Sum>().keep_result(Duration::from_secs(60)).await.unwrap();
        let ids = mill.put_all((1..=5).map(|n| Sum(vec![n, n]))).run().await.unwrap();
        assert_eq!(ids.enqueued, 5);
        let batch = |tasks: Vec<Typed<Sum>>, _: BatchContext| async move {
            for Typed { task, context, .. } in &tasks {
                context.result(&task.0.iter().sum::<u64>())?;
            }
            Ok::<(), Error>(())
        };
        let drain = Worker::new(&mill).handle_batch(batch).drain(true);
        drain.run(std::future::pending()).await.unwrap();
        for id in 1..=5u32 {
            let result = mill.result::<u32>(TaskId(i64::from(id))).await.unwrap();
            assert_eq!(result, TaskResult::Value(id * 2));
        }
    }
}

/// Within the worker's own process nobody polls: the middle of many waits ends within
/// milliseconds of done. Ten times the time that a quiet machine needs is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_is_woken() {
    for (mill, _folder) in mills().await {
        mill.declare::<Sum>().await.unwrap();
        let now = |_: Sum| async { Json(Instant::now().elapsed().as_micros() as u64) };
        let worker = Worker::new(&mill).handle(now).start().await.unwrap();
        let mut waits = Vec::new();
        for n in 0..21 {
            let begun = Instant::now();
            let waited = mill.put(Sum(vec![n])).wait::<u64>(LONG).await.unwrap();
            assert!(waited.is_done(), "{waited:?}");
            waits.push(begun.elapsed());
        }
        waits.sort_unstable();
        println!("put to result: {:?}, longest {:?}", waits[10], waits[20]);
        assert!(waits[10] < Duration::from_millis(300), "{waits:?}");
        worker.stop().await.unwrap();
    }
}

/// Looks until it holds.
async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < LONG, "it does not come to hold");
        tokio::task::yield_now().await;
    }
}
