//! A copy of the whole file while it is in use.

use std::path::{Path, PathBuf};

use gristmill_core::{Result, StoreError};
use rusqlite::params;

use crate::SqliteStore;
use crate::errors::opening;

impl SqliteStore {
    /// Copies the file as it stands now to a new one, synced to disk. Writers
    /// are not held up. Leases are copied as they are: tokens are random, so a
    /// worker of the original cannot settle tasks claimed from the copy.
    ///
    /// # Errors
    /// When the target exists or cannot be written.
    pub async fn backup(&self, target: impl Into<PathBuf>) -> Result<()> {
        let target = target.into();
        if target.exists() {
            return Err(StoreError::Invalid(format!(
                "{} exists; a backup goes to a new file",
                target.display()
            )));
        }
        let path = self.path.clone();
        let copy = target.clone();
        self.is_open()?;
        let (reply, answer) = tokio::sync::oneshot::channel();
        let timeout = std::time::Duration::from_secs(30);
        // A connection of its own: copying takes long, and readers are few.
        let started =
            std::thread::Builder::new().name("gristmill-backup".to_owned()).spawn(move || {
                let _ = reply.send(copy_file(&path, &copy, timeout));
            });
        started.map_err(|e| StoreError::Unavailable(e.to_string()))?;
        let copied = answer.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("the copying thread ended unexpectedly".to_owned()))
        });
        if copied.is_err() {
            // Half a copy must not be taken for a whole one.
            let _ = std::fs::remove_file(&target);
        }
        copied
    }
}

fn copy_file(path: &Path, target: &Path, timeout: std::time::Duration) -> Result<()> {
    let conn = crate::open::reader(path, timeout)?;
    // VACUUM INTO writes another file, which query_only counts as writing.
    conn.pragma_update(None, "query_only", false)
        .and_then(|()| conn.execute("VACUUM INTO ?1", params![target.to_string_lossy()]))
        .map_err(|e| opening(&e, target))?;
    let synced = std::fs::File::open(target).and_then(|file| file.sync_all()).and_then(|()| {
        match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => {
                std::fs::File::open(folder).and_then(|folder| folder.sync_all())
            }
            _ => Ok(()),
        }
    });
    synced.map_err(|e| StoreError::Unavailable(format!("{}: {e}", target.display())))
}
