//! Where the file was when it was opened. A file that is moved, deleted or
//! replaced goes on taking commits, and nobody who opens its name sees them: so
//! its name is looked up around every commit, before anyone is answered.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gristmill_core::{Result, StoreError};

/// A file's name, and which file it was.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Place {
    /// The place of a file that was just opened.
    pub(crate) fn of(path: &Path) -> Self {
        // Wherever the process goes, the name stays the same.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = which(&path);
        Place { path, file }
    }

    /// The file's name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// That the name still leads to the file.
    ///
    /// # Errors
    /// When it leads elsewhere or nowhere: what is written now is lost.
    pub(crate) fn check(&self) -> Result<()> {
        if which(&self.path) == self.file {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "{} was moved, deleted or replaced since it was opened; open it again",
            self.path.display()
        )))
    }
}

fn which(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
