//! What the operating system says, as what the caller can do next.

use std::io::{self, ErrorKind};
use std::path::Path;

use gristmill_core::StoreError;

/// An error of the file system, with what it was about.
pub(crate) fn fault(what: &Path, error: &io::Error) -> StoreError {
    let said = format!("{}: {error}", what.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull(said),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::Permission(said),
        _ => StoreError::Unavailable(said),
    }
}

/// Stored data that cannot be read back.
pub(crate) fn corrupt(what: &str, why: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {why}"))
}

/// The ending of a fallible step on a path.
pub(crate) trait At<T> {
    fn at(self, what: &Path) -> gristmill_core::Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &Path) -> gristmill_core::Result<T> {
        self.map_err(|error| fault(what, &error))
    }
}
