//! The application's database: its tables, on its own connection.

use std::path::Path;
use std::time::Duration;

use gristmill::sqlite::rusqlite::{self, Connection, Transaction, TransactionBehavior};

use crate::status::{BRIEFING, ITEM, SOURCE};

/// For a file that was made before failures were counted.
const ATTEMPTS_ADD: &str = include_str!("sql/attempts_add.sql");
const SCHEMA: &str = include_str!("sql/schema.sql");

/// As long as the queue itself waits for another's write.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the file and makes the tables. Where the queue lives in the same file,
/// open the queue first: it sets the file up.
pub fn open(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open(path)?;
    db.busy_timeout(PATIENCE)?;
    // A status that was said must be there after a power cut, and tasks put in
    // our transactions are as durable as our commits.
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.set_prepared_statement_cache_capacity(64);
    // Two programs may open it at once.
    let mut db = db;
    let transaction = begin(&mut db)?;
    transaction.execute_batch(SCHEMA)?;
    for flow in [SOURCE, ITEM, BRIEFING] {
        if !transaction.column_exists(None, flow.table, "attempts")? {
            transaction.execute_batch(&ATTEMPTS_ADD.replace("{table}", flow.table))?;
        }
    }
    transaction.commit()?;
    Ok(db)
}

/// Begins a transaction that takes the write lock at once: one that reads
/// first and writes later is refused when another wrote in between.
pub fn begin(db: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    db.transaction_with_behavior(TransactionBehavior::Immediate)
}
