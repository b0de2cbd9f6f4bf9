//! One connection and its prepared statements.
//!
//! Statements are found by number, not by their text: hashing the text of each
//! would cost more than running the small ones.

use std::cell::Cell;

use gristmill_core::Result;
use rusqlite::{Connection, Params, Row, Statement};

use crate::errors::fault;
use crate::sql::Sql;

/// A connection with statements that stay prepared.
pub(crate) struct Db<'c> {
    conn: &'c Connection,
    /// Empty when the connection is a guest's: then its own cache serves.
    prepared: Vec<Cell<Option<Statement<'c>>>>,
}

impl<'c> Db<'c> {
    /// For a connection that belongs to the store.
    pub(crate) fn own(conn: &'c Connection) -> Self {
        let prepared = Sql::ALL.iter().map(|_| Cell::new(None)).collect();
        Db { conn, prepared }
    }

    /// For the caller's connection, whose own cache of statements is used.
    pub(crate) const fn guest(conn: &'c Connection) -> Self {
        Db { conn, prepared: Vec::new() }
    }

    /// The connection itself.
    pub(crate) const fn conn(&self) -> &'c Connection {
        self.conn
    }

    /// Runs a statement that steers the transaction (`BEGIN`, `COMMIT`, ...).
    pub(crate) fn steer(&self, statement: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(statement)?.raw_query().next()?;
        Ok(())
    }

    /// Lends the prepared statement. Nested use of the same one is fine: the
    /// inner one is then prepared anew.
    pub(crate) fn with<T>(
        &self,
        sql: Sql,
        work: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.try_with(sql, work).map_err(fault)
    }

    fn try_with<T>(
        &self,
        sql: Sql,
        work: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let Some(place) = self.prepared.get(sql as usize) else {
            return work(&mut *self.conn.prepare_cached(sql.text())?);
        };
        let mut statement = match place.take() {
            Some(statement) => statement,
            None => self.conn.prepare(sql.text())?,
        };
        let answer = work(&mut statement);
        place.set(Some(statement));
        answer
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn run(&self, sql: Sql, params: impl Params) -> Result<usize> {
        self.with(sql, |statement| statement.execute(params))
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: Sql,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.with(sql, |statement| {
            let mut rows = statement.query(params)?;
            match rows.next()? {
                Some(row) => read(row).map(Some),
                None => Ok(None),
            }
        })
    }

    /// Whether there is a row.
    pub(crate) fn any(&self, sql: Sql, params: impl Params) -> Result<bool> {
        Ok(self.one(sql, params, |_| Ok(()))?.is_some())
    }

    /// All rows.
    pub(crate) fn all<T>(
        &self,
        sql: Sql,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.with(sql, |statement| statement.query_map(params, read)?.collect())
    }
}
