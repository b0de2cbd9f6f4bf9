//! A queue, some tasks, a worker: run it with `cargo run --example quickstart`.

use std::time::Duration;

use gristmill::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Greet {
    who: String,
}

impl TaskType for Greet {
    const QUEUE: &'static str = "greetings";
}

async fn greet(task: Greet, context: Context) -> Result<(), String> {
    if task.who == "nobody" && context.attempt == 1 {
        return Err("there is nobody".to_owned()); // again, after the backoff
    }
    println!("hello, {} (attempt {})", task.who, context.attempt);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), gristmill::Error> {
    // sqlite://gristmill.db keeps them; postgres://host/database does for many.
    let mill = Mill::open("memory:").await?;
    mill.declare::<Greet>().max_attempts(3).await?;
    mill.put(Greet { who: "ada".into() }).key("ada").await?;
    let twice = mill.put(Greet { who: "ada".into() }).key("ada").await?;
    println!("put again: {twice:?}");
    mill.put(Greet { who: "grace".into() }).delay(Duration::from_millis(200)).await?;
    mill.put(Greet { who: "first".into() }).priority(-1).await?;
    let worker = Worker::new(&mill).handle(greet).start().await?;
    tokio::time::sleep(Duration::from_millis(400)).await;
    println!("{} done", worker.stop().await?.done);
    Ok(())
}
