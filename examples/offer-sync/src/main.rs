//! Offer sync: batch tasks that take slices of the same data, by the number of
//! others that run or by a slot of their own. See README.md.
//!
//! The queue part is `queue.rs` and `work.rs`; everything else is about offers.

mod args;
mod counting;
mod db;
mod error;
mod market;
mod queue;
mod slice;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gristmill::Mill;

use args::{Args, Command};
use error::Result;
use market::Market;
use queue::{OfferSyncBatch, OfferUpsertBatch, ProcessStatusCheck};

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
    if let Command::Seed { offers, processes } = command {
        db::seed(&db::open(&args.db)?, offers, processes)?;
        println!("{offers} offers and {processes} processes");
        return Ok(());
    }
    let mill = Mill::open(&args.store).await?;
    match command {
        Command::Counting | Command::Seed { .. } => counting::show(&mill).await?,
        Command::Put { by, sync, limit, check, batch_size, upsert, action } => {
            queue::declare(&mill, by).await?;
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
            println!("{} tasks put", sync + check + listed);
        }
        Command::Work { by, processors, drain, meet, pause } => {
            queue::declare(&mill, by).await?;
            let market = Arc::new(Market::open(&args.db, meet, Duration::from_millis(pause))?);
            let report = work::work(&mill, market, by, processors, drain).await?;
            println!("{} done, {} not done", report.done, report.not_done);
        }
        Command::Show => {
            for queue in mill.inspect().stats().await? {
                let (ready, running) = (queue.ready, queue.processing);
                println!("{:<22} {ready} ready, {running} running", queue.queue.as_str());
            }
            println!("\nkind    number   rows  which");
            for line in db::slices(&db::open(&args.db)?)? {
                println!("{line}");
            }
        }
    }
    Ok(mill.close().await?)
}
