//! The schema's own history: each step runs once, under the write lock, and is
//! remembered with a checksum of its text.

use std::path::Path;

use gristmill_core::{Result, StoreError, Timestamp};
use gristmill_text::statement;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::errors::opening;

/// All steps in order; the position is the version.
const STEPS: &[&str] = &[
    include_str!("sql/migration/0001_store.sql"),
    include_str!("sql/migration/0002_tasks.sql"),
    include_str!("sql/migration/0003_lists.sql"),
    include_str!("sql/migration/0004_waits.sql"),
];

/// The newest schema this program knows.
pub(crate) const KNOWN: i64 = STEPS.len() as i64;

const TABLE: &str = statement(include_str!("sql/store.sql"), "migration_table");
const EXISTS: &str = statement(include_str!("sql/store.sql"), "migration_known");
const LIST: &str = statement(include_str!("sql/store.sql"), "migration_list");
const RECORD: &str = statement(include_str!("sql/store.sql"), "migration_record");
const SET: &str = statement(include_str!("sql/store.sql"), "meta_set");

/// Brings the file to the newest schema. Several processes may do this at
/// once: the write lock lets one of them work and shows the others its result.
pub(crate) fn migrate(conn: &Connection, path: &Path, now: Timestamp, id: &str) -> Result<()> {
    let failed = |e: rusqlite::Error| opening(e, path);
    // Most opens find nothing to do and should not wait for a writer.
    if is_current(conn, path)? {
        return Ok(());
    }
    conn.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let done = steps(conn, path, now, id);
    match done {
        Ok(()) => conn.execute_batch("COMMIT").map_err(failed),
        Err(error) => {
            // The first error is the one to tell.
            let _ = conn.execute_batch("ROLLBACK");
            Err(error)
        }
    }
}

/// A new store in memory, to compare with.
pub(crate) fn anew() -> Result<Connection> {
    let memory = Path::new(":memory:");
    let conn = Connection::open_in_memory().map_err(|e| opening(e, memory))?;
    migrate(&conn, memory, Timestamp::EPOCH, "")?;
    Ok(conn)
}

/// Whether a store lives in the file.
pub(crate) fn is_store(conn: &Connection, path: &Path) -> Result<bool> {
    let known: i64 = conn.query_row(EXISTS, [], |row| row.get(0)).map_err(|e| opening(e, path))?;
    Ok(known > 0)
}

fn is_current(conn: &Connection, path: &Path) -> Result<bool> {
    Ok(is_store(conn, path)? && recorded(conn, path)? == KNOWN)
}

fn steps(conn: &Connection, path: &Path, now: Timestamp, id: &str) -> Result<()> {
    let failed = |e: rusqlite::Error| opening(e, path);
    conn.execute_batch(TABLE).map_err(failed)?;
    let found = recorded(conn, path)?;
    for (version, text) in (1i64..).zip(STEPS).filter(|(version, _)| *version > found) {
        conn.execute_batch(text).map_err(failed)?;
        conn.execute(RECORD, params![version, checksum(text), now.as_micros()]).map_err(failed)?;
    }
    if found == 0 {
        conn.execute(SET, params!["store_id", id]).map_err(failed)?;
        conn.execute(SET, params!["settings", 0]).map_err(failed)?;
    }
    Ok(())
}

/// The version the file is at, after comparing every step with ours.
fn recorded(conn: &Connection, path: &Path) -> Result<i64> {
    let failed = |e: rusqlite::Error| opening(e, path);
    let mut statement = conn.prepare(LIST).map_err(failed)?;
    let found: Vec<(i64, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    let newest = found.last().map_or(0, |(version, _)| *version);
    if newest > KNOWN {
        return Err(StoreError::NewerSchema { found: newest, known: KNOWN });
    }
    for ((version, text), (expected, known)) in
        found.iter().zip((1i64..).zip(STEPS.iter().map(|s| checksum(s))))
    {
        if *version != expected || *text != known {
            return Err(StoreError::not_a_store(format!(
                "{}: step {version} of its schema is not the one this program knows; it was made \
                 by a changed gristmill, or changed by hand",
                path.display()
            )));
        }
    }
    Ok(newest)
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
