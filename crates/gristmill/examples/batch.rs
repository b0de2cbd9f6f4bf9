//! A thousand tasks of two queues in one bulk put, and a handler of batches.

use gristmill::prelude::*;
use gristmill::worker::{BatchContext, Typed};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Index {
    page: u32,
}

impl TaskType for Index {
    const QUEUE: &'static str = "pages";
}

#[derive(Serialize, Deserialize)]
struct Audit {
    page: u32,
}

impl TaskType for Audit {
    const QUEUE: &'static str = "audits";
}

async fn index(pages: Vec<Typed<Index>>, batch: BatchContext) -> Result<(), String> {
    for page in pages.iter().filter(|row| row.page % 100 == 13) {
        batch.fail(page.id(), "an unlucky page");
    }
    println!("{} pages at once", pages.len());
    Ok(()) // what is left open is done
}

async fn audit(_: Audit) {}

#[tokio::main]
async fn main() -> Result<(), gristmill::Error> {
    let mill = Mill::open("memory:").await?;
    mill.declare::<Index>().batch_size(250).await?;
    mill.declare::<Audit>().await?;
    let pages = (0..1_000).flat_map(|page| {
        [Put::of(Index { page }), Put::of(Audit { page }).priority(10).source("bulk")]
    });
    let put = mill.put_all(pages).progress(|so_far| println!("{} put", so_far.tasks())).run();
    println!("{} enqueued", put.await?.enqueued);
    let worker = Worker::new(&mill).handle_batch(index).handle(audit).drain(true);
    let report = worker.run(std::future::pending()).await?;
    println!("{} done, {} not", report.done, report.not_done);
    Ok(())
}
