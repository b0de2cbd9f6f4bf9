//! Tasks by the clock, and a finder that looks for what is due.

use std::time::Duration;

use gristmill::prelude::*;
use gristmill::schedule::Finding;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Digest {
    edition: String,
}

impl TaskType for Digest {
    const QUEUE: &'static str = "digests";
}

async fn digest(task: Digest, context: Context) {
    let schedule = context.headers().get("gristmill-schedule");
    println!("{} by {:?}", task.edition, schedule);
}

async fn find(finding: Finding) -> Result<(), gristmill::Error> {
    for edition in ["noon", "evening"] {
        if !finding.can_accept().await? {
            break; // found again at the next fire
        }
        finding.put(Digest { edition: edition.into() }).key(edition).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), gristmill::Error> {
    let mill = Mill::open("memory:").await?;
    mill.declare::<Digest>().await?;
    let second = Duration::from_secs(1);
    let often = Put::of(Digest { edition: "every second".into() }).key("often").priority(5);
    let often = mill.schedule("often").every(second).puts(often);
    let due = mill.schedule("due").every(second).finder("digests", find);
    let scheduler = Scheduler::new(&mill).schedule(often).schedule(due);
    let worker = Worker::new(&mill).handle(digest).start().await?;
    let report = scheduler.run(tokio::time::sleep(3 * second)).await?;
    println!("{} fired; {} done", report.fired, worker.stop().await?.done);
    Ok(())
}
