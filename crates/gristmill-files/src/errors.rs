//! What the operating system says, as what the caller can do next.

use std::io::{self, ErrorKind};
use std::path::Path;

use gristmill_core::StoreError;
pub(crate) use gristmill_text::corrupt;

/// An error of the file system, with what it was about.
pub(crate) fn fault(what: &Path, error: io::Error) -> StoreError {
    let said = what.to_string_lossy();
    let fault = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::disk_full(said),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::permission(said),
        _ => StoreError::unavailable(said),
    };
    fault.caused_by(error)
}

/// The ending of a fallible step on a path.
pub(crate) trait At<T> {
    fn at(self, what: &Path) -> gristmill_core::Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &Path) -> gristmill_core::Result<T> {
        self.map_err(|error| fault(what, error))
    }
}
