//! The statuses a row goes through beside its task, and the one way to change
//! them: each change names the statuses it may come from.
//!
//! ```text
//!   first ──► queued ──► working ──► ended        any of them ──► ERROR
//!     ▲         │           │
//!     └─────────┴───────────┘  recovery, when nobody is at the row any more
//! ```

use std::collections::HashMap;
use std::time::Duration;

use gristmill::Timestamp;
use gristmill::sqlite::rusqlite::{self, Connection, params};

const STATUS_SET: &str = include_str!("sql/status_set.sql");
const STATUS_RETRY: &str = include_str!("sql/status_retry.sql");
const STATUS_COUNT: &str = include_str!("sql/status_count.sql");
const STATUS_ERRORS: &str = include_str!("sql/status_errors.sql");
const STATUS_STUCK: &str = include_str!("sql/status_stuck.sql");
const STATUS_RESET: &str = include_str!("sql/status_reset.sql");

/// What failed, whatever the row.
pub const ERROR: &str = "ERROR";

/// The statuses of one table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The table.
    pub table: &'static str,
    /// Where a row begins, and where recovery puts it back.
    pub first: &'static str,
    /// Its task waits.
    pub queued: &'static str,
    /// Its task runs.
    pub working: &'static str,
    /// All went well. Where this is not the first status, nothing follows it.
    pub ended: &'static str,
}

/// A source: fetched again and again.
pub const SOURCE: Flow =
    Flow { table: "source", first: "IDLE", queued: "QUEUED", working: "FETCHING", ended: "IDLE" };
/// A news item: enriched once.
pub const ITEM: Flow = Flow {
    table: "news_item",
    first: "NEW",
    queued: "PENDING",
    working: "PROCESSING",
    ended: "DONE",
};
/// A briefing: executed again and again.
pub const BRIEFING: Flow = Flow {
    table: "briefing",
    first: "ACTIVE",
    queued: "QUEUED",
    working: "PROCESSING",
    ended: "ACTIVE",
};

impl Flow {
    fn set(
        &self,
        db: &Connection,
        row: i64,
        from: &[&str],
        (to, error): (&str, Option<&str>),
        now: Timestamp,
    ) -> rusqlite::Result<bool> {
        let from = serde_json::json!(from).to_string();
        let sql = STATUS_SET.replace("{table}", self.table);
        let values = params![row, to, now.as_micros(), error, from, self.ended];
        Ok(db.prepare_cached(&sql)?.execute(values)? > 0)
    }

    /// A task was put for the row.
    pub fn queue(&self, db: &Connection, row: i64, now: Timestamp) -> rusqlite::Result<bool> {
        self.set(db, row, &[self.first, ERROR], (self.queued, None), now)
    }

    /// No task was put after all.
    pub fn unqueue(&self, db: &Connection, row: i64, now: Timestamp) -> rusqlite::Result<bool> {
        self.set(db, row, &[self.queued], (self.first, None), now)
    }

    /// The row's task runs. Also from `working`, for a task that came back, and
    /// from ERROR, for one that an operator retried. Returns false when there
    /// is no such row, or nothing is left to do about it.
    pub fn begin(&self, db: &Connection, row: i64, now: Timestamp) -> rusqlite::Result<bool> {
        let from = [self.first, self.queued, self.working, ERROR];
        self.set(db, row, &from, (self.working, None), now)
    }

    /// The row's task ended well.
    pub fn end(&self, db: &Connection, row: i64, now: Timestamp) -> rusqlite::Result<bool> {
        self.set(db, row, &[self.working], (self.ended, None), now)
    }

    /// The row's task ended without an effect: it is to be found again.
    pub fn put_back(&self, db: &Connection, row: i64, now: Timestamp) -> rusqlite::Result<bool> {
        self.set(db, row, &[self.working], (self.first, None), now)
    }

    /// The row's task failed.
    pub fn fail(
        &self,
        db: &Connection,
        row: i64,
        why: &str,
        now: Timestamp,
    ) -> rusqlite::Result<bool> {
        self.set(db, row, &[self.queued, self.working], (ERROR, Some(why)), now)
    }

    /// What failed begins anew: all of it, or one row. Returns how many.
    pub fn retry(
        &self,
        db: &Connection,
        row: Option<i64>,
        now: Timestamp,
    ) -> rusqlite::Result<usize> {
        let sql = STATUS_RETRY.replace("{table}", self.table);
        db.prepare_cached(&sql)?.execute(params![self.first, now.as_micros(), row])
    }

    /// How many rows have each status, in the order of the statuses.
    pub fn count(&self, db: &Connection) -> rusqlite::Result<Vec<(&'static str, u64)>> {
        let sql = STATUS_COUNT.replace("{table}", self.table);
        let mut statement = db.prepare_cached(&sql)?;
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
        })?;
        let counted: HashMap<String, u64> = rows.collect::<rusqlite::Result<_>>()?;
        let ended = Some(self.ended).filter(|ended| *ended != self.first);
        let all = [Some(self.first), Some(self.queued), Some(self.working), ended, Some(ERROR)];
        Ok(all
            .into_iter()
            .flatten()
            .map(|name| (name, counted.get(name).copied().unwrap_or(0)))
            .collect())
    }

    /// The last rows that failed: number, failures, and why.
    pub fn errors(
        &self,
        db: &Connection,
        limit: u32,
    ) -> rusqlite::Result<Vec<(i64, u32, Option<String>)>> {
        let sql = STATUS_ERRORS.replace("{table}", self.table);
        let mut statement = db.prepare_cached(&sql)?;
        let rows =
            statement.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect()
    }

    /// Rows that have been between two ends for longer than this.
    pub fn stuck(
        &self,
        db: &Connection,
        (now, older_than): (Timestamp, Duration),
        after: i64,
        limit: usize,
    ) -> rusqlite::Result<Vec<String>> {
        let sql = STATUS_STUCK.replace("{table}", self.table);
        let mut statement = db.prepare_cached(&sql)?;
        let before = now.before(older_than).as_micros();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = params![self.queued, self.working, before, after, limit];
        let rows = statement.query_map(values, |row| Ok(row.get::<_, i64>(0)?.to_string()))?;
        rows.collect()
    }

    /// Gives those of these rows that are still stuck their first status back.
    pub fn reset(
        &self,
        db: &Connection,
        (now, older_than): (Timestamp, Duration),
        rows: &[String],
    ) -> rusqlite::Result<usize> {
        let sql = STATUS_RESET.replace("{table}", self.table);
        let rows = serde_json::json!(rows).to_string();
        let (before, now) = (now.before(older_than).as_micros(), now.as_micros());
        let values = params![self.queued, self.working, before, self.first, now, rows];
        db.prepare_cached(&sql)?.execute(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(minute: u32) -> Timestamp {
        Timestamp::EPOCH.after(minute * MINUTE)
    }

    fn table(rows: &[(i64, &str, u32)]) -> Connection {
        let db = Connection::open_in_memory().expect("a database");
        db.execute_batch(
            "CREATE TABLE source (id INTEGER PRIMARY KEY, status, status_at, error, attempts)",
        )
        .expect("a table");
        for (id, status, minute) in rows {
            let values = params![id, status, at(*minute).as_micros()];
            db.execute("INSERT INTO source VALUES (?1, ?2, ?3, NULL, 0)", values).expect("a row");
        }
        db
    }

    fn status(db: &Connection, id: i64) -> String {
        db.query_row("SELECT status FROM source WHERE id = ?1", [id], |row| row.get(0))
            .expect("a status")
    }

    #[test]
    fn a_status_only_follows_those_it_may_follow() {
        let db = table(&[(1, "IDLE", 0)]);
        assert!(!SOURCE.end(&db, 1, at(1)).expect("asked"), "nobody is at it");
        assert!(!SOURCE.fail(&db, 1, "why", at(1)).expect("asked"));
        assert!(SOURCE.queue(&db, 1, at(1)).expect("queued"));
        assert!(!SOURCE.queue(&db, 1, at(1)).expect("asked"), "once is enough");
        assert!(SOURCE.begin(&db, 1, at(2)).expect("begun"));
        assert!(SOURCE.begin(&db, 1, at(3)).expect("begun"), "a task may come back");
        assert!(SOURCE.fail(&db, 1, "no such host", at(4)).expect("failed"));
        assert_eq!(status(&db, 1), ERROR);
        assert!(SOURCE.begin(&db, 1, at(5)).expect("begun"), "an operator may retry");
        assert!(SOURCE.end(&db, 1, at(6)).expect("ended"));
        assert_eq!(status(&db, 1), "IDLE");
        assert!(!SOURCE.begin(&db, 2, at(6)).expect("asked"), "there is no such row");
    }

    #[test]
    fn only_old_rows_between_two_ends_are_stuck() {
        let db = table(&[
            (1, "QUEUED", 0),
            (2, "FETCHING", 0),
            (3, "IDLE", 0),
            (4, ERROR, 0),
            (5, "QUEUED", 5),
            (6, "FETCHING", 1),
        ]);
        let when = (at(11), 10 * MINUTE);
        let stuck = |after, limit| SOURCE.stuck(&db, when, after, limit).expect("a list");
        assert_eq!(stuck(0, 9), ["1", "2"], "6 has been so for ten minutes, not for longer");
        assert_eq!((stuck(0, 1), stuck(1, 9)), (vec!["1".to_owned()], vec!["2".to_owned()]));
        // A worker finished 2 since, and began 5.
        SOURCE.end(&db, 2, at(11)).expect("ended");
        let listed = ["1", "2", "5"].map(str::to_owned);
        assert_eq!(SOURCE.reset(&db, when, &listed).expect("reset"), 1);
        assert_eq!([1, 2, 5].map(|id| status(&db, id)), ["IDLE", "IDLE", "QUEUED"]);
    }
}
