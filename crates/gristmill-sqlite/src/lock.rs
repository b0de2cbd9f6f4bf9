//! Waiting for the file's one write lock.
//!
//! SQLite's own waiting sleeps longer and longer, up to a tenth of a second,
//! while the lock is free for some microseconds between two commits of a busy
//! process: such a sleeper may never meet the gap. Here it is asked for often,
//! and by turns: whoever waits stands at a turnstile, and who has just had the
//! lock comes after. Programs that know no turnstile (the application's own
//! transactions) are left a gap that can be met.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_core::Turnstile;
use rusqlite::ErrorCode;

use crate::db::Db;

/// How often it is asked for at first, and when the wait has become long.
const OFTEN: Duration = Duration::from_micros(250);
const SELDOM: Duration = Duration::from_millis(1);
/// A wait is long after this.
const LONG: Duration = Duration::from_millis(100);

/// How it was come by.
pub(crate) struct Taken {
    /// How long it was waited for.
    pub(crate) waited: Duration,
    /// Others had it or stood in front.
    pub(crate) crowded: bool,
}

/// The turnstile of a file: its log, on which SQLite has no locks, and which is
/// the same file for everyone who has the store open.
pub(crate) fn turnstile(store: &Path) -> Turnstile {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    Turnstile::new(File::open(log).ok())
}

/// Begins a transaction that holds the write lock.
pub(crate) fn take(
    db: &Db<'_>,
    turnstile: &mut Turnstile,
    patience: Duration,
) -> rusqlite::Result<Taken> {
    let asked = Instant::now();
    let standing = turnstile.enter();
    let mut crowded = standing.crowded;
    // Only this statement waits here; what else may be locked (a log that is
    // being begun anew) is waited for as SQLite does.
    db.conn().busy_timeout(Duration::ZERO)?;
    let taken = loop {
        match db.steer("BEGIN IMMEDIATE") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && asked.elapsed() < patience =>
            {
                crowded = true;
                let long = asked.elapsed() > LONG;
                std::thread::sleep(if long { SELDOM } else { OFTEN });
            }
            other => break other,
        }
    };
    db.conn().busy_timeout(patience)?;
    taken.map(|()| Taken { waited: asked.elapsed(), crowded })
}

/// Leaves the lock free for a moment after we had it, so that another process can
/// have it. Who comes back later than that has left it free already.
pub(crate) fn give_way(freed: Instant) {
    let left = OFTEN.saturating_sub(freed.elapsed());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}
