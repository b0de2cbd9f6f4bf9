//! Handlers as plain functions, with what they ask for; layers around them; and
//! workers that could do nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::port::Became;
use gristmill::prelude::*;
use gristmill::testing::TestMill;
use gristmill::worker::layer::{self, from_fn_with_state};
use gristmill::worker::{BatchContext, FromAttempt, FromRef, Typed};
use gristmill::{Error, TaskState};
use serde::{Deserialize, Serialize};
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;

use crate::Mail;

type Log = Arc<Mutex<Vec<String>>>;

#[derive(Clone, Default)]
struct App {
    sent: Log,
    count: Arc<AtomicU64>,
}

/// A part of it.
#[derive(Clone)]
struct Counter(Arc<AtomicU64>);

impl FromRef<App> for Counter {
    fn from_ref(app: &App) -> Self {
        Counter(app.count.clone())
    }
}

/// An argument of the tests' own.
struct Which(u32);

impl<S> FromAttempt<S> for Which {
    fn from_attempt(context: &Context, _: &S) -> Self {
        Which(context.attempt)
    }
}

async fn mill() -> TestMill {
    let mill = TestMill::new();
    mill.declare::<Mail>().await.unwrap();
    mill
}

fn said(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

async fn nothing(mail: Mail, State(app): State<App>) {
    app.sent.lock().unwrap().push(mail.to);
}

async fn result(mail: Mail, context: Context, State(app): State<App>) -> Result<(), String> {
    app.sent.lock().unwrap().push(format!("{} {}", mail.to, context.attempt));
    if context.attempt == 1 { Err("not yet".to_owned()) } else { Ok(()) }
}

async fn outcome(mail: Mail) -> Outcome {
    fail(format!("never {}", mail.to))
}

async fn both(
    _: Mail,
    mill: Mill,
    State(counter): State<Counter>,
    Which(attempt): Which,
) -> Result<Outcome, Error> {
    counter.0.fetch_add(mill.inspect().queue("mails").await?.processing, Ordering::Relaxed);
    Ok(if attempt == 1 { retry_in(Duration::ZERO) } else { Outcome::Done })
}

#[tokio::test]
async fn plain_functions_take_what_they_ask_for_and_say_what_they_like() {
    let (mill, app) = (mill().await, App::default());
    let worker = || Worker::new(&mill).state(app.clone());
    mill.put(Mail::to("a")).await.unwrap();
    assert_eq!(mill.run_until_idle(&worker().handle(nothing)).await.unwrap().done, 1);
    assert_eq!(said(&app.sent), ["a"]);

    mill.put(Mail::to("b")).await.unwrap();
    let later = worker().handle(result);
    assert_eq!(mill.run_until_idle(&later).await.unwrap().not_done, 1);
    mill.clock().advance(Duration::from_secs(3600));
    assert_eq!(mill.run_until_idle(&later).await.unwrap().done, 1);
    assert_eq!(said(&app.sent), ["a", "b 1", "b 2"]);

    let put = mill.put(Mail::to("c")).await.unwrap();
    mill.run_until_idle(&worker().handle(outcome)).await.unwrap();
    let failed = mill.store().get(put.id()).await.unwrap().unwrap();
    assert_eq!((failed.state, failed.error.as_deref()), (TaskState::Failed, Some("never c")));

    mill.put(Mail::to("d")).await.unwrap();
    assert_eq!(mill.run_until_idle(&worker().handle(both)).await.unwrap().done, 1);
    assert_eq!(app.count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn closures_say_the_types_of_their_arguments() {
    let (mill, app) = (mill().await, App::default());
    mill.put(Mail::to("a")).await.unwrap();
    let worker = Worker::new(&mill)
        .state(app.clone())
        .handle(async |mail: Mail, State(app): State<App>| app.sent.lock().unwrap().push(mail.to));
    assert_eq!(mill.run_until_idle(&worker).await.unwrap().done, 1);
    assert_eq!(said(&app.sent), ["a"]);
}

#[tokio::test]
async fn a_batch_has_state_too() {
    async fn all(mails: Vec<Typed<Mail>>, State(app): State<App>, batch: BatchContext) {
        let mut sent = app.sent.lock().unwrap();
        for mail in mails {
            sent.push(mail.to.clone());
            batch.done(mail.id());
        }
    }
    let (mill, app) = (mill().await, App::default());
    mill.put_all(["a", "b"].map(Mail::to)).run().await.unwrap();
    let worker = Worker::new(&mill).state(app.clone()).batch(10).handle_batch(all);
    assert_eq!(mill.run_until_idle(&worker).await.unwrap().done, 2);
    assert_eq!(said(&app.sent), ["a", "b"]);
}

/// Layer `name` in and out.
async fn told(
    State((log, name)): State<(Log, &'static str)>,
    attempt: Attempt,
    next: Next,
) -> Outcome {
    let tasks = attempt.contexts().count();
    log.lock().unwrap().push(format!("{name} in {tasks}"));
    let outcome = next.run(attempt).await;
    log.lock().unwrap().push(format!("{name} out"));
    outcome
}

#[tokio::test]
async fn layers_go_around_every_handler_the_first_outermost() {
    let (mill, app) = (mill().await, App::default());
    let layer = |name| from_fn_with_state((app.sent.clone(), name), told);
    mill.put(Mail::to("a")).await.unwrap();
    let worker = Worker::new(&mill)
        .state(app.clone())
        .layer(layer("outer"))
        .handle(nothing.layer(layer("own")))
        .layer(layer("inner"));
    assert_eq!(mill.run_until_idle(&worker).await.unwrap().done, 1);
    let all = ["outer in 1", "inner in 1", "own in 1", "a", "own out", "inner out", "outer out"];
    assert_eq!(said(&app.sent), all);

    mill.put_all(["b", "c"].map(Mail::to)).run().await.unwrap();
    app.sent.lock().unwrap().clear();
    let worker = Worker::new(&mill)
        .batch(10)
        .layer(layer("outer"))
        .handle_batch(async |_: Vec<Typed<Mail>>| {});
    assert_eq!(mill.run_until_idle(&worker).await.unwrap().done, 2);
    assert_eq!(said(&app.sent), ["outer in 2", "outer out"]);
}

#[tokio::test]
async fn a_layer_may_settle_the_task_itself() {
    async fn refuse(attempt: Attempt, next: Next) -> Result<Outcome, String> {
        match attempt.context().headers().get("tenant").map(String::as_str) {
            Some("acme") => Ok(next.run(attempt).await),
            Some(_) => Ok(fail("not our tenant")),
            None => Err("no tenant".to_owned()),
        }
    }
    let (mill, app) = (mill().await, App::default());
    mill.put(Mail::to("a")).header("tenant", "acme").await.unwrap();
    let other = mill.put(Mail::to("b")).header("tenant", "other").await.unwrap();
    mill.put(Mail::to("c")).await.unwrap();
    let worker = Worker::new(&mill).state(app.clone()).layer(from_fn(refuse)).handle(nothing);
    let report = mill.run_until_idle(&worker).await.unwrap();
    assert_eq!((report.done, report.not_done), (1, 2));
    assert_eq!(said(&app.sent), ["a"]);
    let failed = mill.store().get(other.id()).await.unwrap().unwrap();
    assert_eq!(failed.error.as_deref(), Some("not our tenant"));
}

#[tokio::test]
async fn layers_of_tower_go_around_handlers() {
    let (mill, _folder) = crate::mills().await.remove(0);
    let counts = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let counting = counts.clone();
    mill.put_all((0..40).map(Mail::to)).run().await.unwrap();
    let worker = Worker::new(&mill)
        .processors(8)
        .batch(1)
        .layer(layer::tower(ConcurrencyLimitLayer::new(2)))
        .handle(move |_: Mail| {
            let counting = counting.clone();
            async move {
                let (running, most) = &*counting;
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            }
        })
        .drain(true);
    assert_eq!(worker.run(std::future::pending()).await.unwrap().done, 40);
    assert!(counts.1.load(Ordering::SeqCst) <= 2, "the limit is shared by all attempts");

    mill.put(Mail::to("slow")).await.unwrap();
    let id = mill.inspect().list(Default::default()).await.unwrap().tasks[0].id;
    let worker = Worker::new(&mill)
        .layer(layer::tower(TimeoutLayer::new(Duration::from_millis(1))))
        .handle(async |_: Mail| std::future::pending::<()>().await)
        .drain(true);
    assert_eq!(worker.run(std::future::pending()).await.unwrap().not_done, 1);
    let error = mill.store().get(id).await.unwrap().unwrap().error;
    assert_eq!(error.as_deref(), Some("request timed out"));
}

#[tokio::test]
async fn a_hook_hears_of_each_settlement() {
    let (mill, log) = (mill().await, Log::default());
    let hears = log.clone();
    mill.put_all(["ok", "bad", "never"].map(Mail::to)).run().await.unwrap();
    let worker = Worker::new(&mill)
        .handle(async |mail: Mail| match mail.to.as_str() {
            "bad" => Err("no route".to_owned()),
            "never" => Ok(fail("no such host")),
            _ => Ok(Outcome::Done),
        })
        .on_settled(move |settled| {
            let became = match settled.became {
                Some(Became::Failed) => "failed",
                Some(Became::Pending { .. }) => "pending",
                _ => "done",
            };
            let words = format!("{} {became} {:?}", settled.context.id, settled.outcome.error());
            hears.lock().unwrap().push(words);
        });
    mill.run_until_idle(&worker).await.unwrap();
    let mut heard = said(&log);
    heard.sort();
    let all = ["1 done None", "2 pending Some(\"no route\")", "3 failed Some(\"no such host\")"];
    assert_eq!(heard, all);
}

#[derive(Serialize, Deserialize)]
struct Other;

impl TaskType for Other {
    const QUEUE: &'static str = "others";
}

#[tokio::test]
async fn a_worker_that_could_do_nothing_is_an_error() {
    let mill = mill().await;
    let none = Worker::new(&mill).start().await;
    assert!(matches!(none, Err(Error::NoHandlers)), "{none:?}");
    let none = Worker::new(&mill).run(std::future::pending()).await;
    assert!(matches!(none, Err(Error::NoHandlers)), "{none:?}");
    let none = Worker::new(&mill).processors(0).handle(outcome).start().await;
    assert!(matches!(none, Err(Error::NoProcessors)), "{none:?}");
    let unknown = Worker::new(&mill).handle(async |_: Other| {}).start().await;
    assert!(matches!(unknown, Err(Error::Store(_))), "{unknown:?}");
}
