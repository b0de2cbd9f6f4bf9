//! A row of the database's answer, by whichever driver it came: what is asked
//! in the caller's transaction is read like everything else.

use gristmill_core::Result;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::errors::{corrupt, told};

/// A row whose columns can be read by their position.
pub(crate) trait Answer {
    /// The value of a column, or why it is not what it should be.
    fn value<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, String>;
}

impl Answer for Row {
    fn value<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, String> {
        self.try_get(at).map_err(|e| told(&e))
    }
}

/// Reads a column, or says that stored data is not what it should be.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a impl Answer, at: usize) -> Result<T> {
    row.value(at).map_err(|why| corrupt("an answer of the database", why))
}

/// Reads each row by itself: one that cannot be read is told, and hides none of
/// the others. `gristmill check` names them all.
pub(crate) fn readable<T>(rows: &[Row], what: &str, read: impl Fn(&Row) -> Result<T>) -> Vec<T> {
    let told = |row| {
        read(row)
            .inspect_err(|error| tracing::warn!(error = %error.whole(), "{what} cannot be read"))
            .ok()
    };
    rows.iter().filter_map(told).collect()
}
