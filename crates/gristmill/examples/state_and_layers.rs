//! What handlers share, and code around them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gristmill::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl TaskType for Mail {
    const QUEUE: &'static str = "mails";
}

#[derive(Clone, Default)]
struct App {
    sent: Arc<AtomicU64>,
}

async fn send(mail: Mail, State(app): State<App>) -> Outcome {
    if !mail.to.contains('@') {
        return fail(format!("{} is no address", mail.to));
    }
    println!("mail {} to {}", app.sent.fetch_add(1, Ordering::Relaxed) + 1, mail.to);
    Outcome::Done
}

async fn timed(attempt: Attempt, next: Next) -> Outcome {
    let (id, start) = (attempt.context().id, Instant::now());
    let outcome = next.run(attempt).await;
    println!("task {id} took {:?}: {outcome:?}", start.elapsed());
    outcome
}

#[tokio::main]
async fn main() -> Result<(), gristmill::Error> {
    let mill = Mill::open("memory:").await?;
    mill.declare::<Mail>().await?;
    let all = ["ada@example.org", "nowhere", "grace@example.org"];
    mill.put_all(all.map(|to| Mail { to: to.into() })).run().await?;
    let app = App::default();
    let worker = Worker::new(&mill).state(app.clone()).layer(from_fn(timed)).handle(send);
    let report = worker.drain(true).run(std::future::pending()).await?;
    println!("{} done, {} not", report.done, report.not_done);
    Ok(())
}
