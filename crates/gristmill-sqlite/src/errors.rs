//! What SQLite says went wrong, in the words of the port.

use std::path::Path;

use gristmill_core::StoreError;
pub(crate) use gristmill_text::corrupt;
use rusqlite::{Error, ErrorCode};

/// An error before the commit: nothing was written.
pub(crate) fn fault(error: Error) -> StoreError {
    let error = match error {
        // Without the statement itself, which may be a whole file.
        Error::SqlInputError { error, msg, .. } => Error::SqliteFailure(error, Some(msg)),
        other => other,
    };
    let fault = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::busy("another process holds the file's write lock")
        }
        Some(ErrorCode::DiskFull) => StoreError::disk_full(""),
        Some(ErrorCode::NotADatabase) => {
            StoreError::not_a_store("the file is not an SQLite database")
        }
        Some(ErrorCode::DatabaseCorrupt) => StoreError::corrupt(""),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            StoreError::permission("")
        }
        Some(ErrorCode::TooBig) => StoreError::invalid("SQLite takes nothing of this size"),
        // The store was opened, so its tables were there: somebody dropped one.
        Some(ErrorCode::Unknown) if lacks_a_part(&error.to_string()) => StoreError::corrupt(""),
        Some(_) => StoreError::unavailable(""),
        None => match error {
            // A stored value of the wrong shape: somebody else wrote it.
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => StoreError::corrupt(""),
            _ => StoreError::unavailable(""),
        },
    };
    fault.caused_by(error)
}

/// Whether SQLite misses a part of our schema.
fn lacks_a_part(said: &str) -> bool {
    ["no such table: ", "no such index: ", "no such view: ", "no such column: "].iter().any(
        |what| {
            said.find(what)
                .is_some_and(|at| said.get(at..).is_some_and(|s| s.contains("gristmill_")))
        },
    )
}

/// An error while opening: the sentence names the file.
pub(crate) fn opening(error: Error, path: &Path) -> StoreError {
    let shown = path.display();
    match fault(error) {
        StoreError::NotAStore(why) => {
            StoreError::NotAStore(why.reworded(format!("{shown} is not an SQLite database")))
        }
        fault @ (StoreError::Permission(_)
        | StoreError::Corrupt(_)
        | StoreError::Unavailable(_)) => fault.map_why(|why| why.reworded(shown.to_string())),
        other => other,
    }
}

/// Whether a failed commit certainly left nothing behind: these are refused
/// before the commit's own record is written.
pub(crate) fn refused_before_commit(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                // A damaged page is met while pages are read.
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
        )
    )
}
