//! A copy of the whole file while it is in use.
//!
//! It is written beside its place under a name that ends in `.partial`, and gets
//! its own name when it is whole and synced. So what a killed backup leaves
//! cannot be taken for a copy, and does not stand in the next one's way.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill_core::{Result, StoreError, Token};
use rusqlite::params;

use crate::SqliteStore;
use crate::errors::opening;

/// How long another process's write is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// A partial copy that nobody wrote to for this long is a killed backup's.
const FORGOTTEN: Duration = Duration::from_secs(3600);

impl SqliteStore {
    /// Copies the file as it stands now to a new one, synced to disk, with the
    /// same permissions. Writers are not held up. Leases are copied as they are:
    /// tokens are random, so a worker of the original cannot settle tasks
    /// claimed from the copy.
    ///
    /// # Errors
    /// When the target exists or cannot be written.
    pub async fn backup(&self, target: impl Into<PathBuf>) -> Result<()> {
        let (path, target) = (self.path.clone(), target.into());
        self.is_open()?;
        let (reply, answer) = tokio::sync::oneshot::channel();
        // A connection of its own: copying takes long, and readers are few.
        let started =
            std::thread::Builder::new().name("gristmill-backup".to_owned()).spawn(move || {
                let _ = reply.send(back_up(&path, &target));
            });
        started.map_err(|e| StoreError::unavailable("no thread could be started").caused_by(e))?;
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::unavailable("the copying thread ended unexpectedly".to_owned()))
        })
    }
}

fn back_up(path: &Path, target: &Path) -> Result<()> {
    if std::fs::symlink_metadata(target).is_ok() {
        return Err(taken(target));
    }
    sweep(target);
    let partial = partial_of(target)?;
    let copied = copy(path, target, &partial);
    if copied.is_err() {
        // Half a copy must not be taken for a whole one.
        let _ = std::fs::remove_file(&partial);
    }
    copied
}

fn copy(path: &Path, target: &Path, partial: &Path) -> Result<()> {
    let shown = target.to_string_lossy();
    let cannot = |e: io::Error| StoreError::unavailable(&*shown).caused_by(e);
    // Made by us, and not through a link that somebody laid there.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(partial);
    let file = file.map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
            StoreError::permission(&*shown).caused_by(e)
        }
        _ => cannot(e),
    })?;
    vacuum_into(path, partial)?;
    let whole = file.metadata().map_err(cannot)?;
    let named = std::fs::symlink_metadata(partial).map_err(cannot)?;
    if (whole.dev(), whole.ino()) != (named.dev(), named.ino()) {
        let said = format!("{} was replaced while it was written", partial.display());
        return Err(StoreError::unavailable(said));
    }
    let mode = std::fs::metadata(path).map_err(cannot)?.permissions();
    file.set_permissions(mode).and_then(|()| file.sync_all()).map_err(cannot)?;
    if std::fs::symlink_metadata(target).is_ok() {
        return Err(taken(target));
    }
    std::fs::rename(partial, target).map_err(cannot)?;
    crate::open::sync_folder(target);
    Ok(())
}

fn vacuum_into(path: &Path, partial: &Path) -> Result<()> {
    let conn = crate::open::reader(path, PATIENCE)?;
    // VACUUM INTO writes another file, which query_only counts as writing.
    conn.pragma_update(None, "query_only", false)
        .and_then(|()| conn.execute("VACUUM INTO ?1", params![partial.to_string_lossy()]))
        .map(drop)
        .map_err(|e| opening(e, partial))
}

fn taken(target: &Path) -> StoreError {
    StoreError::invalid(format!("{} exists; a backup goes to a new file", target.display()))
}

/// `copy.db` is written as `copy.db.0123abcd.partial`: two backups to one name do
/// not write into one file.
fn partial_of(target: &Path) -> Result<PathBuf> {
    let token = Token::random()?.to_string();
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}.partial", token.get(..8).unwrap_or_default()));
    Ok(PathBuf::from(name))
}

/// Removes what killed backups to the same name left. One that is being written
/// is younger.
fn sweep(target: &Path) {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = std::fs::read_dir(crate::open::folder_of(target)) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let is_partial = found
            .to_str()
            .and_then(|found| found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".partial"))
            .is_some_and(|token| {
                token.len() == 8 && token.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_partial && age().is_some_and(|age| age > FORGOTTEN) {
            // It only takes room: whoever may not remove it lets it lie.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
