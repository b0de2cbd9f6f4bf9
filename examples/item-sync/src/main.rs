//! Item sync: market items from JSON files into SQLite or PostgreSQL, and work
//! that follows from them on queues in the same database. See README.md.
//!
//! The queue part is `queue.rs` and `work.rs`; everything else is about items.

mod anomaly;
mod args;
#[cfg(test)]
mod cost;
mod crew;
mod db;
mod error;
mod feed;
mod items;
mod log;
mod notice;
mod out;
mod postgres;
mod process;
mod queue;
mod review;
mod show;
mod sync;
mod trend;
mod work;

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gristmill::Mill;
use gristmill::port::Action;

use args::{Args, Command};
use crew::Until;
use error::Result;
use items::{Items, store_url};
use notice::Receiver;
use out::say;
use process::Processes;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    log::install(args.debug);
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("item-sync: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let place = args.db.as_str();
    match args.command {
        Command::Sync { files, chunk } => {
            let (mill, mut items) = open(place, args.retries).await?;
            for file in &files {
                let synced = input(file)
                    .and_then(|input| sync::sync(&mill, items.as_mut(), input, usize::from(chunk)));
                let file = file.display();
                say!("{file}: {}", synced.map_err(|error| format!("{file}: {error:#}"))?)?;
            }
            Ok(mill.close().await?)
        }
        Command::Work { drain, log, webhook, webhook_ca, lease, queues, processors, budget } => {
            let shares = crew::shares(&queues, &processors)?;
            let agent = notice::agent(webhook_ca.as_deref())?;
            if webhook.is_none() {
                notice::check_log(&log)?;
            }
            let (mill, items) = open(place, args.retries).await?;
            let receiver =
                webhook.map_or(Receiver::Log(log), |webhook| Receiver::Webhook(agent, webhook));
            let processes = Arc::new(Processes::new(items, receiver));
            let terms = (args.retries, lease.map(|seconds| Duration::from_secs(seconds.into())));
            let workers = || {
                let worker = |share| work::worker(&mill, &processes, share, terms);
                shares.iter().map(worker).collect()
            };
            let report = crew::run(workers, Until { drained: drain, budget }).await?;
            say!("{} done, {} not done", report.done, report.not_done)?;
            if !report.left.is_empty() {
                let left = &report.left;
                say!("left: {} still run, {} not on record", left.running, left.unsettled)?;
            }
            if budget.is_some() {
                let queues = mill.inspect().stats().await?;
                let ready: u64 = queues.iter().map(|queue| queue.ready).sum();
                say!("{ready} ready for the next run")?;
            }
            Ok(mill.close().await?)
        }
        Command::Delete { item } => {
            // No queue in sight: the binding works for whoever deletes.
            let mut items = items::open(existing(place)?).await?;
            if items.delete(item)? { Ok(()) } else { Err(format!("no item {item}").into()) }
        }
        Command::Show => {
            let mill = mill(existing(place)?).await?;
            let items = items::open(place).await?.list(show::ITEMS)?;
            let queues = mill.inspect().stats().await?;
            match show::show(&mut std::io::stdout().lock(), &queues, &items) {
                // Whoever read it has seen enough.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                shown => shown?,
            }
            Ok(mill.close().await?)
        }
        Command::Review { group, retry, discard, ask } => {
            let mill = mill(existing(place)?).await?;
            match group {
                Some(mark) => {
                    let retry = retry.then_some(Action::Retry);
                    let action = retry.or(discard.then_some(Action::Discard));
                    review::decide(&mill, &mark, action).await?;
                }
                None if ask => review::ask(&mill, &mut BufReader::new(std::io::stdin())).await?,
                None => review::list(&mill).await?,
            }
            Ok(mill.close().await?)
        }
    }
}

async fn mill(place: &str) -> Result<Mill> {
    Ok(Mill::open_at(&store_url(place)?).await?)
}

/// Opens the queue and the application's tables in one database. The queue
/// comes first because it sets a file up, its queues last because they are
/// bound to a table.
async fn open(place: &str, retries: bool) -> Result<(Mill, Box<dyn Items>)> {
    let mill = mill(place).await?;
    let items = items::open(place).await?;
    queue::declare(&mill, retries).await?;
    Ok((mill, items))
}

/// Only what is there can be shown or deleted: no empty file is made for it.
fn existing(place: &str) -> Result<&str> {
    let is_there = place.contains("://") || Path::new(place).exists();
    if is_there { Ok(place) } else { Err(format!("there is no {place}").into()) }
}

fn input(file: &Path) -> Result<Box<dyn Read>> {
    if file == Path::new("-") {
        Ok(Box::new(std::io::stdin().lock()))
    } else {
        Ok(Box::new(File::open(file)?))
    }
}
