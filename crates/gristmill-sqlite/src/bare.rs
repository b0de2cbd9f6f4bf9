//! The bare limit: what prepared statements on the same SQLite build reach
//! without a queue around them. The benchmark prints it beside every rate.

use std::path::Path;

use gristmill_core::{Result, StoreError};
use gristmill_text::statement;
use rusqlite::{Connection, params};

const SCHEMA: &str = statement(include_str!("sql/bare.sql"), "schema");
const INSERT: &str = statement(include_str!("sql/bare.sql"), "insert");
const PICK: &str = statement(include_str!("sql/bare.sql"), "pick");
const LEASE: &str = statement(include_str!("sql/bare.sql"), "lease");
const DELETE: &str = statement(include_str!("sql/bare.sql"), "delete");
const RELEASE: &str = statement(include_str!("sql/bare.sql"), "release");

/// A hand-written queue table, as durable as the store: WAL and
/// `synchronous=FULL`.
#[derive(Debug)]
pub struct Bare {
    connection: Connection,
    inserted: i64,
    /// Where the last lease ended.
    leased: i64,
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::unavailable("").caused_by(error)
}

impl Bare {
    /// Makes the table in a new file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let connection = Connection::open(path).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        connection.pragma_update(None, "cache_size", -65_536).map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        Ok(Bare { connection, inserted: 0, leased: 0 })
    }

    /// Inserts rows, `a_commit` in each transaction; every tenth has a key.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn insert(&mut self, rows: usize, a_commit: usize, payload: &[u8]) -> Result<()> {
        let mut left = rows;
        while left > 0 {
            let now = left.min(a_commit);
            let transaction = self.connection.transaction().map_err(failed)?;
            {
                let mut insert = transaction.prepare_cached(INSERT).map_err(failed)?;
                for _ in 0..now {
                    self.inserted += 1;
                    let key = (self.inserted % 10 == 0).then(|| format!("key-{}", self.inserted));
                    insert.execute(params![self.inserted, key, payload]).map_err(failed)?;
                }
            }
            transaction.commit().map_err(failed)?;
            left -= now;
        }
        Ok(())
    }

    /// Leases up to `batch` rows by one lease row, whose commit waits for no disk;
    /// deletes them and it, and commits that. Returns how many.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn lease_then_delete(&mut self, batch: usize, token: &[u8]) -> Result<usize> {
        let limit = i64::try_from(batch).unwrap_or(i64::MAX);
        let mut picked: Vec<(i64, Vec<u8>)> = Vec::with_capacity(batch);
        self.connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        let transaction = self.connection.transaction().map_err(failed)?;
        {
            let mut pick = transaction.prepare_cached(PICK).map_err(failed)?;
            let rows = pick.query_map(params![self.leased, i64::MAX, limit], |row| {
                // A worker would need the payload: read it as well.
                Ok((row.get(0)?, row.get(1)?))
            });
            for row in rows.map_err(failed)? {
                picked.push(row.map_err(failed)?);
            }
        }
        let (Some((first, _)), Some((last, _))) = (picked.first(), picked.last()) else {
            return Ok(0);
        };
        let mut lease = transaction.prepare_cached(LEASE).map_err(failed)?;
        lease.execute(params![token, i64::MAX, first, last]).map_err(failed)?;
        drop(lease);
        transaction.commit().map_err(failed)?;
        self.leased = *last;
        self.connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        let transaction = self.connection.transaction().map_err(failed)?;
        {
            let mut delete = transaction.prepare_cached(DELETE).map_err(failed)?;
            delete.execute(params![first, last]).map_err(failed)?;
            let mut release = transaction.prepare_cached(RELEASE).map_err(failed)?;
            release.execute(params![token]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(picked.len())
    }
}
