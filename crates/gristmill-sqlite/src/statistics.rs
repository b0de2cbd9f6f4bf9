//! Statistics that somebody gathered of our tables are forgotten at the opening.
//!
//! A queue is empty at one moment and full at the next. With the numbers of the
//! almost empty one SQLite reads the whole table of tasks for each that is
//! claimed or checked; without any it takes the index, always. The application
//! whose file it is may gather statistics whenever it likes, and of its own
//! tables they stay.

use std::path::Path;

use gristmill_core::Result;
use gristmill_text::statement;
use rusqlite::{Connection, ErrorCode};

use crate::errors::opening;

const KNOWN: &str = statement(include_str!("sql/sweep.sql"), "statistics_known");
const OURS: &str = statement(include_str!("sql/sweep.sql"), "statistics_ours");
const FORGET: &str = statement(include_str!("sql/sweep.sql"), "statistics_forget");

/// Forgets them, and has the connection plan anew. Nothing is written when there
/// are none. Whoever writes meanwhile is not waited for: it is only slower then.
pub(crate) fn forget(conn: &Connection, path: &Path) -> Result<()> {
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let forgotten = || -> rusqlite::Result<()> {
        if count(KNOWN)? == 0 || count(OURS)? == 0 {
            return Ok(());
        }
        conn.execute(FORGET, [])?;
        // Only reads the statistics again.
        conn.execute_batch("ANALYZE sqlite_schema")
    };
    match forgotten() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
            tracing::debug!(path = %path.display(), %error, "old statistics stay for now");
            Ok(())
        }
        other => other.map_err(|e| opening(e, path)),
    }
}
