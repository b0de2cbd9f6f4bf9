//! A row and its task in one transaction of PostgreSQL: name a database,
//! `DATABASE_URL=postgres://localhost/shop cargo run --example postgres`.

use gristmill::postgres::tokio_postgres::{NoTls, connect};
use gristmill::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct PriceChanged {
    item: i64,
}

impl TaskType for PriceChanged {
    const QUEUE: &'static str = "prices";

    fn key(&self) -> Option<String> {
        Some(self.item.to_string()) // one waits for an item at most
    }
}

async fn changed(task: PriceChanged) {
    println!("item {} has a new price", task.item);
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(url) = std::env::var("DATABASE_URL") else {
        println!("DATABASE_URL names no database");
        return Ok(());
    };
    let mill = Mill::open(&url).await?;
    mill.declare::<PriceChanged>().await?;
    let (mut db, connection) = connect(&url, NoTls).await?;
    tokio::spawn(connection);
    db.batch_execute("CREATE TABLE IF NOT EXISTS item (id bigint PRIMARY KEY, cents bigint)")
        .await?;
    for cents in [100_i64, 120] {
        let mut transaction = db.transaction().await?;
        let save = "INSERT INTO item VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET cents = $1";
        transaction.execute(save, &[&cents]).await?;
        let put = mill.put(PriceChanged { item: 1 }).within(&mut transaction).await?;
        transaction.commit().await?;
        println!("{cents}: {:?}", put.committed());
    }
    let worker = Worker::new(&mill).handle(changed).drain(true);
    println!("{} done", worker.run(std::future::pending()).await?.done);
    Ok(())
}
