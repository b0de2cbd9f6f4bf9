//! Why an attempt went wrong is kept whole: an error with all its causes, however
//! it is boxed, and the place of a panic.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill::Mill;
use gristmill::port::Outcome;
use gristmill::worker::{BatchContext, Context, Typed, Worker, fail};

use crate::Mail;

#[derive(Debug, thiserror::Error)]
#[error("sending the mail")]
struct Unsent(#[source] Refused);

#[derive(Debug, thiserror::Error)]
#[error("no connection to {host}")]
struct Refused {
    host: &'static str,
    #[source]
    why: std::io::Error,
}

fn unsent() -> Unsent {
    let why = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
    Unsent(Refused { host: "mx1", why })
}

const TOLD: &str = "sending the mail: no connection to mx1: connection refused";

async fn by_type(_: Mail, _: Context) -> Result<(), Unsent> {
    Err(unsent())
}

async fn by_anyhow(_: Mail, _: Context) -> anyhow::Result<()> {
    use anyhow::Context as _;
    let sent: Result<(), Refused> = Err(unsent().0);
    sent.context("sending the mail")
}

async fn by_box(_: Mail, _: Context) -> Result<(), Box<dyn Error>> {
    Err(unsent())?;
    Ok(())
}

async fn by_box_that_travels(_: Mail, _: Context) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    Err(unsent())?;
    Ok(Outcome::Done)
}

async fn for_good(_: Mail, _: Context) -> Outcome {
    fail(unsent())
}

async fn in_a_batch(mails: Vec<Typed<Mail>>, batch: BatchContext) -> Result<(), String> {
    for mail in mails {
        batch.error(mail.id(), unsent());
    }
    Ok(())
}

const LINE: u32 = line!() + 3;

fn out_of_stamps() -> Result<(), String> {
    panic!("no more stamps")
}

/// The error of the one task after this worker had it.
async fn kept(serve: impl FnOnce(Worker) -> Worker) -> String {
    let mill = Mill::open("memory:").await.unwrap();
    mill.declare::<Mail>().with(|s| s.max_attempts = Some(Some(1))).await.unwrap();
    let id = mill.put(Mail::to("ada")).await.unwrap().id();
    serve(Worker::new(&mill)).drain(true).run(std::future::pending()).await.unwrap();
    let task = mill.inspect().task(id).await.unwrap().unwrap();
    assert_eq!(task.history[0].error, task.error);
    task.error.unwrap()
}

#[tokio::test]
async fn an_error_is_kept_with_all_its_causes() {
    assert_eq!(kept(|worker| worker.handle(by_type)).await, TOLD);
    assert_eq!(kept(|worker| worker.handle(by_anyhow)).await, TOLD);
    assert_eq!(kept(|worker| worker.handle(by_box)).await, TOLD);
    assert_eq!(kept(|worker| worker.handle(by_box_that_travels)).await, TOLD);
    assert_eq!(kept(|worker| worker.handle(for_good)).await, TOLD);
    assert_eq!(kept(|worker| worker.handle_batch(in_a_batch)).await, TOLD);
    let said = kept(|worker| worker.handle(|_: Mail| async { Err::<(), _>("no") })).await;
    assert_eq!(said, "no");
}

#[tokio::test]
async fn a_panic_is_kept_with_its_place_and_the_programs_own_hook_is_called() {
    let heard = Arc::new(AtomicUsize::new(0));
    let (hears, before) = (heard.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() == Some("no more stamps") {
            hears.fetch_add(1, Ordering::SeqCst);
        } else {
            before(info);
        }
    }));
    let said = kept(|worker| worker.handle(|_: Mail| async { out_of_stamps() })).await;
    let place = format!("at {}:{LINE}:", file!());
    assert!(
        said.starts_with("the handler panicked: no more stamps, ") && said.contains(&place),
        "{said}"
    );
    assert_eq!(heard.load(Ordering::SeqCst), 1);
    // One that comes from another thread has its message and no wrong place.
    let said = kept(|worker| {
        worker.handle(|_: Mail| async {
            let other: Result<(), _> = tokio::spawn(async { panic!("no more stamps") }).await;
            match other {
                Err(ended) => std::panic::resume_unwind(ended.into_panic()),
                Ok(()) => Ok::<(), String>(()),
            }
        })
    })
    .await;
    assert!(said.starts_with("the handler panicked: no more stamps"), "{said}");
}

#[tokio::test]
async fn an_endless_error_keeps_its_beginning_and_its_end() {
    let said = kept(|worker| {
        worker.handle(|_: Mail| async {
            let why = std::io::Error::other(format!("{} the end", "x".repeat(100_000)));
            Err::<(), _>(Refused { host: "mx1", why })
        })
    })
    .await;
    assert!(
        said.starts_with("no connection to mx1: xxx") && said.ends_with("xxx the end"),
        "{said}"
    );
    assert!(said.len() <= 4096 && said.contains(" bytes left out]"), "{said}");
}
