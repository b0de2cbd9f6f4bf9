//! The shop's tables. They are in SQLite whatever store the tasks are in.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill::sqlite::rusqlite::{self, Connection, params};

use crate::slice::Slice;

const SCHEMA: &str = include_str!("sql/schema.sql");
const OFFER_SEED: &str = include_str!("sql/offer_seed.sql");
const OFFER_SLICE: &str = include_str!("sql/offer_slice.sql");
const OFFER_SHARE: &str = include_str!("sql/offer_share.sql");
const OFFER_SYNCED: &str = include_str!("sql/offer_synced.sql");
const OFFER_UPSERT: &str = include_str!("sql/offer_upsert.sql");
const PROCESS_SEED: &str = include_str!("sql/process_seed.sql");
const PROCESS_SLICE: &str = include_str!("sql/process_slice.sql");
const PROCESS_CHECKED: &str = include_str!("sql/process_checked.sql");
const SLICE_BEGIN: &str = include_str!("sql/slice_begin.sql");
const SLICE_END: &str = include_str!("sql/slice_end.sql");
const SLICE_LIST: &str = include_str!("sql/slice_list.sql");

/// Opens the file and makes the tables.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    conn.execute_batch(SCHEMA)?;
    Ok(conn)
}

/// Makes as many offers and processes, numbered from 1.
pub(crate) fn seed(db: &Connection, offers: u32, processes: u32) -> rusqlite::Result<()> {
    db.execute(OFFER_SEED, params![offers])?;
    db.execute(PROCESS_SEED, params![processes]).map(drop)
}

fn numbers(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Vec<i64>> {
    db.prepare(sql)?.query_map(params, |row| row.get(0))?.collect()
}

pub(crate) fn offer_slice(db: &Connection, slice: Slice) -> rusqlite::Result<Vec<i64>> {
    numbers(db, OFFER_SLICE, params![slice.limit, slice.offset().cast_signed()])
}

pub(crate) fn offer_share(
    db: &Connection,
    slice: Slice,
    shares: u32,
) -> rusqlite::Result<Vec<i64>> {
    numbers(db, OFFER_SHARE, params![slice.limit, shares, slice.number])
}

pub(crate) fn process_slice(db: &Connection, slice: Slice) -> rusqlite::Result<Vec<i64>> {
    numbers(db, PROCESS_SLICE, params![slice.limit, slice.offset().cast_signed()])
}

fn each(db: &mut Connection, sql: &str, rows: &[i64]) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    {
        let mut statement = transaction.prepare(sql)?;
        for row in rows {
            statement.execute(params![row])?;
        }
    }
    transaction.commit()
}

pub(crate) fn offers_synced(db: &mut Connection, eans: &[i64]) -> rusqlite::Result<()> {
    each(db, OFFER_SYNCED, eans)
}

pub(crate) fn processes_checked(db: &mut Connection, ids: &[i64]) -> rusqlite::Result<()> {
    each(db, PROCESS_CHECKED, ids)
}

pub(crate) fn upsert(db: &mut Connection, offers: &[(i64, i64)]) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    for (ean, price) in offers {
        transaction.execute(OFFER_UPSERT, params![ean, price])?;
    }
    transaction.commit()
}

/// A batch that begins.
pub(crate) struct Began<'a> {
    pub(crate) task: i64,
    pub(crate) kind: &'a str,
    pub(crate) number: Option<u32>,
    pub(crate) rows: &'a [i64],
}

fn micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn slice_begin(db: &Connection, began: &Began<'_>) -> rusqlite::Result<i64> {
    let (first, last) = (began.rows.first(), began.rows.last());
    let rows = i64::try_from(began.rows.len()).unwrap_or(i64::MAX);
    db.execute(
        SLICE_BEGIN,
        params![began.task, began.kind, began.number, first, last, rows, micros()],
    )?;
    Ok(db.last_insert_rowid())
}

pub(crate) fn slice_end(db: &Connection, slice: i64) -> rusqlite::Result<()> {
    db.execute(SLICE_END, params![slice, micros()]).map(drop)
}

/// What each batch took, as lines.
pub(crate) fn slices(db: &Connection) -> rusqlite::Result<Vec<String>> {
    db.prepare(SLICE_LIST)?
        .query_map([], |row| {
            let (kind, rows): (String, i64) = (row.get(0)?, row.get(4)?);
            let number: Option<u32> = row.get(1)?;
            let (first, last): (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
            let number = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
            Ok(format!("{kind:<7} {number:>6} {rows:>6}  {first}-{last}"))
        })?
        .collect()
}
