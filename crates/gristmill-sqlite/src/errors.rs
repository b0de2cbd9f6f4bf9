//! What SQLite says went wrong, in the words of the port.

use std::path::Path;

use gristmill_core::StoreError;
pub(crate) use gristmill_text::corrupt;
use rusqlite::{Error, ErrorCode};

/// An error before the commit: nothing was written.
pub(crate) fn fault(error: &Error) -> StoreError {
    let said = match error {
        // Without the statement itself, which may be a whole file.
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy("another process holds the file's write lock".to_owned())
        }
        Some(ErrorCode::DiskFull) => StoreError::DiskFull(said),
        Some(ErrorCode::NotADatabase) => {
            StoreError::NotAStore("the file is not an SQLite database".to_owned())
        }
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(said),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            StoreError::Permission(said)
        }
        Some(ErrorCode::TooBig) => StoreError::Invalid(said),
        // The store was opened, so its tables were there: somebody dropped one.
        Some(ErrorCode::Unknown) if lacks_a_part(&said) => StoreError::Corrupt(said),
        Some(_) => StoreError::Unavailable(said),
        None => match error {
            // A stored value of the wrong shape: somebody else wrote it.
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => StoreError::Corrupt(said),
            _ => StoreError::Unavailable(said),
        },
    }
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
pub(crate) fn opening(error: &Error, path: &Path) -> StoreError {
    let shown = path.display();
    match fault(error) {
        StoreError::Permission(said) => StoreError::Permission(format!("{shown}: {said}")),
        StoreError::NotAStore(_) => {
            StoreError::NotAStore(format!("{shown} is not an SQLite database"))
        }
        StoreError::Corrupt(said) => StoreError::Corrupt(format!("{shown}: {said}")),
        StoreError::Unavailable(said) => StoreError::Unavailable(format!("{shown}: {said}")),
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
