//! An API client that keeps to 50 calls a second over three worker processes, and how
//! many it made in each: run it with `cargo run --example rate`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gristmill::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Call(u32);

impl TaskType for Call {
    const QUEUE: &'static str = "calls";
}

async fn call(Call(number): Call) {
    println!("{number}"); // here the API would be asked
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(store) = std::env::args().nth(1) {
        let mill = Mill::open(&store).await?;
        let worker = Worker::new(&mill).handle(call).processors(2).drain(true);
        worker.run(std::future::pending()).await?;
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("gristmill-rate-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let store = format!("sqlite://{}/queue.db", folder.display());
    let mill = Mill::open(&store).await?;
    mill.declare::<Call>().rate(50, Duration::from_secs(1)).burst(5).await?;
    mill.put_all((0..200).map(Call)).run().await?;
    let (calls, called) = mpsc::channel();
    let mut workers = Vec::new();
    for _ in 0..3 {
        let mut command = Command::new(std::env::current_exe()?);
        let mut worker = command.arg(&store).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(worker.stdout.take().ok_or("no output")?).lines();
        let calls = calls.clone();
        std::thread::spawn(move || lines.for_each(|_| _ = calls.send(Instant::now())));
        workers.push(worker);
    }
    drop(calls);
    let times: Vec<Instant> = called.into_iter().collect();
    let first = *times.first().ok_or("nobody called")?;
    let took = times.last().map_or(Duration::ZERO, |last| last.duration_since(first));
    for second in 0..=took.as_secs() {
        let of_it = times.iter().filter(|time| time.duration_since(first).as_secs() == second);
        println!("second {second}: {} calls", of_it.count());
    }
    println!("{} calls in {:.2} s", times.len(), took.as_secs_f64());
    workers.iter_mut().try_for_each(|worker| worker.wait().map(drop))?;
    Ok(std::fs::remove_dir_all(folder)?)
}
