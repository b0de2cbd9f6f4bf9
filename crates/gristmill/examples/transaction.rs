//! A row and its task in one transaction of SQLite, and its end in another.

use gristmill::prelude::*;
use gristmill::sqlite::rusqlite::Connection;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Ship {
    order: i64,
}

impl TaskType for Ship {
    const QUEUE: &'static str = "shipping";
}

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn ship(task: Ship, State(file): State<String>, context: Context) -> Result<(), Error> {
    let mut db = Connection::open(file)?;
    let mut transaction = db.transaction()?;
    transaction.execute("UPDATE orders SET shipped = 1 WHERE id = ?", [task.order])?;
    let done = context.complete_in(&mut transaction).now()?;
    transaction.commit()?; // shipped and done, or neither
    done.committed();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("shop-{}.db", std::process::id()));
    let file = file.display().to_string();
    let mill = Mill::open(&format!("sqlite://{file}")).await?;
    mill.declare::<Ship>().await?;
    let mut db = Connection::open(&file)?;
    db.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, shipped INTEGER)")?;
    for _ in 0..3 {
        let mut transaction = db.transaction()?;
        transaction.execute("INSERT INTO orders (shipped) VALUES (0)", [])?;
        let order = transaction.last_insert_rowid();
        let put = mill.put(Ship { order }).within(&mut transaction).now()?;
        transaction.commit()?;
        println!("order {order}: {:?}", put.committed());
    }
    let worker = Worker::new(&mill).state(file.clone()).handle(ship).drain(true);
    let report = worker.run(std::future::pending()).await?;
    let shipped: i64 = db.query_row("SELECT sum(shipped) FROM orders", [], |row| row.get(0))?;
    println!("{shipped} shipped, {} tasks gone with their transaction", report.gone);
    mill.close().await?;
    std::fs::remove_file(file)?;
    Ok(())
}
