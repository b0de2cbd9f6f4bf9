//! Opening the file: library and file are checked before anything is written.

use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_core::{Result, StoreError, Token};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::Options;
use crate::errors::opening;
use crate::{migration, statistics};

/// Older libraries can corrupt a WAL file when two connections reset it at
/// once.
const OLDEST_LIBRARY: i32 = 3_051_003;

/// Opens the connection that writes, creating and migrating the file.
pub(crate) fn writer(path: &Path, options: &Options) -> Result<Connection> {
    check_library(rusqlite::version_number())?;
    let is_new = !path.exists();
    if is_new && !options.create {
        return Err(StoreError::not_a_store(format!("there is no store at {}", path.display())));
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if options.create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let failed = |e: rusqlite::Error| opening(e, path);
    if is_new {
        make_private(path);
    }
    has_one_name(path)?;
    let conn = Connection::open_with_flags(path, flags).map_err(failed)?;
    conn.busy_timeout(options.busy_timeout).map_err(failed)?;
    // Before anything is written, the journal's mode included: whoever only
    // looks must not turn another application's file into a store.
    if !options.create && !migration::is_store(&conn, path)? {
        return Err(StoreError::not_a_store(format!(
            "there is no store in {}: it is empty, or a database of something else",
            path.display()
        )));
    }
    use_wal(&conn, path, options.busy_timeout)?;
    prepare(&conn, path, "FULL")?;
    sync_log(path)?;
    let id = Token::random()?.to_string();
    migration::migrate(&conn, path, options.clock.now(), &id)?;
    statistics::forget(&conn, path)?;
    if is_new {
        sync_folder(path);
    }
    Ok(conn)
}

/// Makes the file, so that only its owner can read it; payloads may be anything.
/// SQLite gives its logs the same mode. Somebody else may be quicker, and what is
/// wrong with the path SQLite says better.
fn make_private(path: &Path) {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if let Err(error) = made {
        tracing::debug!(path = %path.display(), %error, "the file was not made");
    }
}

/// A file with two names would have a log for each: what is written by one name
/// is not seen by the other, and lost.
fn has_one_name(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(file) if file.is_file() && file.nlink() > 1 => Err(StoreError::not_a_store(format!(
            "{} has {} names (hard links), and what is written by one is not seen by the others: \
             remove the others, and make copies with 'gristmill backup'",
            path.display(),
            file.nlink()
        ))),
        _ => Ok(()),
    }
}

/// Opens a connection that only reads.
pub(crate) fn reader(path: &Path, busy_timeout: Duration) -> Result<Connection> {
    // Not opened read-only: a reader of a WAL file may have to make its index.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |e: rusqlite::Error| opening(e, path);
    let conn = Connection::open_with_flags(path, flags).map_err(failed)?;
    conn.busy_timeout(busy_timeout).map_err(failed)?;
    prepare(&conn, path, "FULL")?;
    conn.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(conn)
}

fn check_library(version: i32) -> Result<()> {
    if version < OLDEST_LIBRARY {
        return Err(StoreError::unavailable(format!(
            "the SQLite library is {}, and 3.51.3 or newer is needed: older ones can damage a \
             file that two processes write",
            rusqlite::version()
        )));
    }
    Ok(())
}

fn prepare(conn: &Connection, path: &Path, synchronous: &str) -> Result<()> {
    let set = || -> rusqlite::Result<()> {
        conn.pragma_update(None, "synchronous", synchronous)?;
        // Our tables have no foreign keys, and the library may default to on.
        conn.pragma_update(None, "foreign_keys", false)?;
        conn.pragma_update(None, "temp_store", "MEMORY")?;
        // Claims and puts touch the ends of their indexes: more pages would only
        // make a worker larger (it should stay under 32 MB while it drains).
        conn.pragma_update(None, "cache_size", -8_000)?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(())
    };
    set().map_err(|e| opening(e, path))
}

/// Turns the write-ahead log on. SQLite answers *busy* at once here while
/// another process does the same, so the waiting is ours.
fn use_wal(conn: &Connection, path: &Path, patience: Duration) -> Result<()> {
    let start = Instant::now();
    loop {
        let mode: rusqlite::Result<String> =
            conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::unavailable(format!(
                    "{}: the file stays in journal mode '{mode}', the write-ahead log is needed",
                    path.display()
                )));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < patience =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(opening(error, path)),
        }
    }
}

/// Makes durable what a killed process may have left in the log without: whoever
/// opens the file first reads it as committed, and answers from it.
fn sync_log(path: &Path) -> Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match std::fs::File::open(&log) {
        // SQLite has its locks on other files, so closing this one frees none.
        Ok(file) => file
            .sync_data()
            .map_err(|e| StoreError::unavailable(Path::new(&log).to_string_lossy()).caused_by(e)),
        Err(_) => Ok(()),
    }
}

/// Makes the new file's name durable. Where the folder may not be read, the
/// sync that SQLite gives it with its own files has to do.
pub(crate) fn sync_folder(path: &Path) {
    let folder = folder_of(path);
    if let Err(error) = std::fs::File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!(folder = %folder.display(), %error, "the folder could not be synced");
    }
}

/// The folder that the file stands in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_library_is_refused() {
        let refused = check_library(3_040_001);
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
        assert_eq!(check_library(rusqlite::version_number()), Ok(()));
    }
}
