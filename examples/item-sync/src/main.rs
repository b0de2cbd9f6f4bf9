//! Item sync: market items from JSON files into SQLite, and work that follows
//! from them on queues in the same file. See README.md.
//!
//! The queue part is `queue.rs` and `work.rs`; everything else is about items.

mod anomaly;
mod args;
mod db;
mod error;
mod feed;
mod log;
mod notice;
mod process;
mod queue;
mod show;
mod signal;
mod sync;
mod trend;
mod work;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gristmill::Mill;

use args::{Args, Command};
use error::Result;
use notice::Receiver;
use process::Processes;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    log::install(args.debug);
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("item-sync: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let path = args.db.as_path();
    match args.command {
        Command::Sync { files, chunk } => {
            let (mill, mut db) = open(path, args.retries).await?;
            for file in &files {
                let synced = input(file)
                    .and_then(|input| sync::sync(&mill, &mut db, input, usize::from(chunk)));
                let file = file.display();
                println!("{file}: {}", synced.map_err(|error| format!("{file}: {error}"))?);
            }
            Ok(mill.close().await?)
        }
        Command::Work { drain, log, webhook, lease } => {
            let (mill, db) = open(path, args.retries).await?;
            let receiver = webhook.map_or(Receiver::Log(log), Receiver::Webhook);
            let processes = Arc::new(Processes::new(db, receiver));
            let lease = lease.map(|seconds| Duration::from_secs(seconds.into()));
            let report = work::work(&mill, processes, drain, args.retries, lease).await?;
            println!("{} done, {} not done", report.done, report.not_done);
            Ok(mill.close().await?)
        }
        Command::Delete { item } => {
            // No queue in sight: the binding works for whoever deletes.
            let db = db::open(existing(path)?)?;
            if db::delete(&db, item)? { Ok(()) } else { Err(format!("no item {item}").into()) }
        }
        Command::Show => {
            let mill = mill(existing(path)?).await?;
            let items = db::list(&db::open(path)?, show::ITEMS)?;
            let queues = mill.inspect().stats().await?;
            match show::show(&mut std::io::stdout().lock(), &queues, &items) {
                // Whoever read it has seen enough.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                shown => shown?,
            }
            Ok(mill.close().await?)
        }
    }
}

async fn mill(path: &Path) -> Result<Mill> {
    Ok(Mill::open(&format!("sqlite://{}", path.display())).await?)
}

/// Opens the queue and the application's tables in one file. The queue comes
/// first because it sets the file up, its queues last because they are bound
/// to a table.
async fn open(
    path: &Path,
    retries: bool,
) -> Result<(Mill, gristmill::sqlite::rusqlite::Connection)> {
    let mill = mill(path).await?;
    let db = db::open(path)?;
    queue::declare(&mill, retries).await?;
    Ok((mill, db))
}

/// Only what is there can be shown or deleted: no empty file is made for it.
fn existing(path: &Path) -> Result<&Path> {
    if path.exists() { Ok(path) } else { Err(format!("there is no {}", path.display()).into()) }
}

fn input(file: &Path) -> Result<Box<dyn Read>> {
    if file == Path::new("-") {
        Ok(Box::new(std::io::stdin().lock()))
    } else {
        Ok(Box::new(File::open(file)?))
    }
}
