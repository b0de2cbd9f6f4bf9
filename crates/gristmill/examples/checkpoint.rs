//! A long import that is killed three times and goes on at its checkpoint: run it with
//! `cargo run --example checkpoint`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use gristmill::Backoff;
use gristmill::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Import(u32);

impl TaskType for Import {
    const QUEUE: &'static str = "imports";
}

async fn import(Import(rows): Import, context: Context) -> Result<(), gristmill::Error> {
    let first: u32 = context.resume()?.unwrap_or(0);
    println!("attempt {} begins at row {first}", context.attempt);
    for row in first..rows {
        tokio::time::sleep(Duration::from_millis(10)).await; // the work of one row
        context.checkpoint(&(row + 1)).await?;
        println!("row {row}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(store) = std::env::args().nth(1) {
        let mill = Mill::open(&store).await?;
        Worker::new(&mill).handle(import).run(std::future::pending()).await?;
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("gristmill-import-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let store = format!("sqlite://{}/queue.db", folder.display());
    let mill = Mill::open(&store).await?;
    let short = Duration::from_millis(300);
    let backoff = Backoff { base: short, cap: short, jitter: false };
    mill.declare::<Import>().lease(short).backoff(backoff).await?;
    mill.put(Import(40)).await?;
    for rows in [Some(10), Some(10), Some(10), None] {
        let mut command = Command::new(std::env::current_exe()?);
        let mut worker = command.arg(&store).stdout(Stdio::piped()).spawn()?;
        let said = BufReader::new(worker.stdout.take().ok_or("no output")?).lines();
        for line in said.map_while(Result::ok).take(rows.map_or(11, |rows| rows + 1)) {
            println!("{line}");
        }
        while rows.is_none() && mill.inspect().queue("imports").await?.total() > 0 {
            tokio::time::sleep(short).await; // the last one may finish
        }
        worker.kill()?;
        worker.wait()?;
    }
    Ok(std::fs::remove_dir_all(folder)?)
}
