//! Waiting for the file's one write lock.
//!
//! SQLite's own waiting sleeps longer and longer, up to a tenth of a second,
//! while the lock is free for some microseconds between two commits of a busy
//! process: such a sleeper may never meet the gap. Here it is asked for often,
//! and who shares the file leaves a gap that can be met.

use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use crate::db::Db;

/// How often it is asked for at first, and when the wait has become long.
const OFTEN: Duration = Duration::from_micros(250);
const SELDOM: Duration = Duration::from_millis(1);
/// A wait is long after this.
const LONG: Duration = Duration::from_millis(100);

/// Begins a transaction that holds the write lock; returns how long it waited.
pub(crate) fn take(db: &Db<'_>, patience: Duration) -> rusqlite::Result<Duration> {
    let asked = Instant::now();
    // Only this statement waits here; what else may be locked (a log that is
    // being begun anew) is waited for as SQLite does.
    db.conn().busy_timeout(Duration::ZERO)?;
    let taken = loop {
        match db.steer("BEGIN IMMEDIATE") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && asked.elapsed() < patience =>
            {
                let long = asked.elapsed() > LONG;
                std::thread::sleep(if long { SELDOM } else { OFTEN });
            }
            other => break other,
        }
    };
    db.conn().busy_timeout(patience)?;
    taken.map(|()| asked.elapsed())
}

/// Leaves the lock free for a moment, so that another process can have it.
pub(crate) fn give_way() {
    std::thread::sleep(OFTEN);
}
