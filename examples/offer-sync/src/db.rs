//! The shop's tables. They are in SQLite whatever store the tasks are in.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill::sqlite::rusqlite::{self, Connection, TransactionBehavior, params};

use crate::error::Result;
use crate::slice::Slice;

const SCHEMA: &str = include_str!("sql/schema.sql");
const OFFER_SEED: &str = include_str!("sql/offer_seed.sql");
const OFFER_SLICE: &str = include_str!("sql/offer_slice.sql");
const OFFER_TAKE: &str = include_str!("sql/offer_take.sql");
const OFFER_TAKEN: &str = include_str!("sql/offer_taken.sql");
const OFFER_BATCH: &str = include_str!("sql/offer_batch.sql");
const OFFER_MARKED: &str = include_str!("sql/offer_marked.sql");
const OFFER_HELD: &str = include_str!("sql/offer_held.sql");
const OFFER_FREE: &str = include_str!("sql/offer_free.sql");
const OFFER_LEFT: &str = include_str!("sql/offer_left.sql");
const OFFER_SYNCED: &str = include_str!("sql/offer_synced.sql");
const OFFER_UPSERT: &str = include_str!("sql/offer_upsert.sql");
const PROCESS_SEED: &str = include_str!("sql/process_seed.sql");
const PROCESS_SLICE: &str = include_str!("sql/process_slice.sql");
const PROCESS_CHECKED: &str = include_str!("sql/process_checked.sql");

/// The tables as this program makes them; what has another number was made by
/// another one.
const VERSION: i64 = 2;

/// Opens the file and makes the tables.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    let mut conn = Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    // Several programs may start at once.
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let fresh = !transaction.table_exists(None, "offer")?;
    if !fresh && version != VERSION {
        let path = path.display();
        return Err(format!("{path} is of another version of offer-sync: delete it").into());
    }
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(conn)
}

/// Makes as many offers and processes, numbered from 1.
pub(crate) fn seed(db: &Connection, offers: u32, processes: u32) -> rusqlite::Result<()> {
    db.execute(OFFER_SEED, params![offers])?;
    db.execute(PROCESS_SEED, params![processes]).map(drop)
}

/// A row that a batch has in hand, with its version where that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) number: i64,
    pub(crate) version: Option<i64>,
}

fn numbers(db: &Connection, sql: &str, slice: Slice) -> rusqlite::Result<Vec<Row>> {
    db.prepare(sql)?
        .query_map(params![slice.limit, slice.offset().cast_signed()], |row| {
            Ok(Row { number: row.get(0)?, version: None })
        })?
        .collect()
}

pub(crate) fn offer_slice(db: &Connection, slice: Slice) -> rusqlite::Result<Vec<Row>> {
    numbers(db, OFFER_SLICE, slice)
}

pub(crate) fn process_slice(db: &Connection, slice: Slice) -> rusqlite::Result<Vec<Row>> {
    numbers(db, PROCESS_SLICE, slice)
}

/// Takes a batch of what is not synced into this task's hands, and with it what an
/// earlier run of the task left there.
pub(crate) fn offer_take(
    db: &Connection,
    task: i64,
    slice: Slice,
    shares: u32,
) -> rusqlite::Result<Vec<Row>> {
    db.execute(OFFER_TAKE, params![task, slice.limit, shares, slice.number])?;
    db.execute(OFFER_TAKEN, [task])?;
    db.prepare(OFFER_BATCH)?
        .query_map([task], |row| Ok(Row { number: row.get(0)?, version: row.get(1)? }))?
        .collect()
}

/// The other tasks that have offers in their hands.
pub(crate) fn offer_held(db: &Connection, but: i64) -> rusqlite::Result<Vec<i64>> {
    db.prepare(OFFER_HELD)?.query_map([but], |row| row.get(0))?.collect()
}

/// What the task had in its hands is anybody's again.
pub(crate) fn offer_free(db: &Connection, task: i64) -> rusqlite::Result<usize> {
    db.execute(OFFER_FREE, [task])
}

/// How many offers are not synced.
pub(crate) fn offer_left(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row(OFFER_LEFT, [], |row| row.get(0))
}

/// Reads or takes the rows of a batch, within the transaction that records it.
pub(crate) type Take<'a> = &'a (dyn Fn(&Connection) -> rusqlite::Result<Vec<Row>> + Sync);

/// Marks what the batch has done, within its transaction. Returns how many rows.
pub(crate) type Mark<'a> = &'a (dyn Fn(&Connection, &[Row]) -> rusqlite::Result<usize> + Sync);

/// As synced, each once: what somebody else marked or changed is left alone.
pub(crate) fn offers_marked(db: &Connection, task: i64, rows: &[Row]) -> rusqlite::Result<usize> {
    let mut mark = db.prepare(OFFER_MARKED)?;
    rows.iter().map(|row| mark.execute(params![row.number, row.version, task])).sum()
}

/// As synced, whether or not they were before.
pub(crate) fn offers_synced(db: &Connection, rows: &[Row]) -> rusqlite::Result<usize> {
    let mut mark = db.prepare(OFFER_SYNCED)?;
    rows.iter().map(|row| mark.execute([row.number])).sum()
}

pub(crate) fn processes_checked(db: &Connection, rows: &[Row]) -> rusqlite::Result<usize> {
    let mut mark = db.prepare(PROCESS_CHECKED)?;
    rows.iter().map(|row| mark.execute([row.number])).sum()
}

pub(crate) fn upsert(db: &Connection, offers: &[(i64, i64)]) -> rusqlite::Result<usize> {
    let mut write = db.prepare(OFFER_UPSERT)?;
    offers.iter().map(|(ean, price)| write.execute(params![ean, price])).sum()
}

/// Now, in microseconds.
pub(crate) fn micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
