//! Offer sync: batch tasks that take slices of the same data, by the number of
//! others that run or by a slot of their own. See README.md.
//!
//! The queue part is `queue.rs` and `work.rs`; everything else is about offers.

mod args;
mod counting;
mod db;
mod error;
mod hands;
mod market;
mod out;
mod picture;
mod queue;
mod record;
mod slice;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gristmill::sqlite::rusqlite::Connection;
use gristmill::{Mill, TaskType};

use args::{Args, Batches, Command};
use error::Result;
use market::Market;
use out::say;
use queue::{OfferSyncBatch, OfferUpsertBatch, ProcessStatusCheck};
use work::App;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("offer-sync: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let command = args.command.unwrap_or(Command::Counting);
    match command {
        Command::Seed { offers, processes } => {
            db::seed(&db::open(&args.db)?, offers, processes)?;
            return Ok(say!("{offers} offers and {processes} processes")?);
        }
        Command::Picture { kind } => {
            let drawn = picture::draw(&record::list(&db::open(&args.db)?)?, &kind);
            return Ok(say!("{}", drawn.trim_end())?);
        }
        _ => {}
    }
    let mill = Mill::open(&args.store).await?;
    let slots = match args.slots {
        Some(slots) => slots,
        None => slots(&mill).await?,
    };
    match command {
        Command::Put { by, sync, limit, check, batch_size, upsert, action } => {
            queue::declare(&mill, by, slots, queue::LEASE).await?;
            let sync = match sync {
                Batches::Some(count) => count,
                Batches::All => sync.count(db::offer_left(&db::open(&args.db)?)?, limit),
            };
            for _ in 0..sync {
                queue::put(&mill, OfferSyncBatch { limit }, &action).await?;
            }
            for _ in 0..check {
                queue::put(&mill, ProcessStatusCheck { batch_size }, &action).await?;
            }
            let listed = u32::from(!upsert.is_empty());
            if listed > 0 {
                queue::put(&mill, OfferUpsertBatch { offers: upsert }, &action).await?;
            }
            let sum = sync + check + listed;
            say!("{sum} {} put", if sum == 1 { "task" } else { "tasks" })?;
        }
        Command::Work { by, processors, drain, lease, meet, pause } => {
            let lease = lease.map_or(queue::LEASE, Duration::from_millis);
            queue::declare(&mill, by, slots, lease).await?;
            let market = Arc::new(Market::open(&args.db, meet, Duration::from_millis(pause))?);
            let processors = processors.map_or(usize::try_from(slots)?, |said| said);
            let report = work::work(&mill, App { market, by, slots }, processors, drain).await?;
            let stats = mill.inspect().stats().await?;
            let elsewhere = match stats.iter().map(|queue| queue.processing).sum() {
                0 => String::new(),
                // Of a worker that runs, or of a dead one until its leases are over.
                count => format!(", {count} in another worker's hands"),
            };
            say!("{} done, {} not done{elsewhere}", report.done, report.not_done)?;
        }
        Command::Show => show(&mill, &db::open(&args.db)?).await?,
        Command::Counting | Command::Seed { .. } | Command::Picture { .. } => {
            counting::show(&mill).await?;
        }
    }
    Ok(mill.close().await?)
}

/// The slots that were said last, so that they are said once.
async fn slots(mill: &Mill) -> Result<u32> {
    let queues = mill.inspect().queues().await?;
    let sync = queues.iter().find(|queue| queue.name.as_str() == OfferSyncBatch::QUEUE);
    Ok(sync.and_then(|queue| queue.settings.slots).unwrap_or(queue::SLOTS))
}

async fn show(mill: &Mill, db: &Connection) -> Result<()> {
    for queue in mill.inspect().stats().await? {
        let (ready, running) = (queue.ready, queue.processing);
        let failed =
            if queue.failed == 0 { String::new() } else { format!(", {} failed", queue.failed) };
        say!("{:<22} {ready} ready, {running} running{failed}", queue.queue.as_str())?;
    }
    say!("\n{} offers are not synced\n", db::offer_left(db)?)?;
    say!("kind    number   rows  which")?;
    for taken in record::list(db)? {
        let number = taken.number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let ended = if taken.ended.is_some() { "" } else { "  (not ended)" };
        say!("{:<7} {number:>6} {:>6}  {}{ended}", taken.kind, taken.rows, taken.which())?;
    }
    Ok(())
}
