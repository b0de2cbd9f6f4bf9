//! A copy of the whole file while it is in use.
//!
//! It is written beside its place under a name that ends in `.partial`, and gets
//! its own name when it is whole and synced. So what a killed backup leaves
//! cannot be taken for a copy, and does not stand in the next one's way.
//!
//! A disk that does not answer is told of like that of the store itself, and ends
//! the wait: whoever asked is let go, and the copy is given up.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gristmill_core::{Result, Signs, StoreError, Token, Watchdog};
use rusqlite::params;
use tokio::sync::oneshot;

use crate::SqliteStore;
use crate::errors::opening;

/// How long another process's write is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// A partial copy that nobody wrote to for this long is a killed backup's.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// The copy gives a sign after so many steps of SQLite's machine, a few tasks: they
/// may be large.
const STEPS: i32 = 50;
/// It is synced each time it has become so much longer. One sync of everything at
/// the end would be a silence that grows with the store.
const SYNCED_EACH: u64 = 32 << 20;

/// How far a copy is, for whoever waits for it and for who makes it: only one of
/// them decides whether it gets its name.
#[derive(Debug, Clone, Default)]
struct Fate(Arc<AtomicU8>);

const UNDER_WAY: u8 = 0;
const NAMED: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Fate {
    /// Whether it is this, from now on at the latest.
    fn is(&self, wanted: u8) -> bool {
        let order = Ordering::SeqCst;
        match self.0.compare_exchange(UNDER_WAY, wanted, order, order) {
            Ok(_) => true,
            Err(decided) => decided == wanted,
        }
    }

    fn is_given_up(&self) -> bool {
        self.0.load(Ordering::SeqCst) == GIVEN_UP
    }
}

impl SqliteStore {
    /// Copies the file as it stands now to a new one, synced to disk, with the
    /// same permissions. Writers are not held up. Leases are copied as they are:
    /// tokens are random, so a worker of the original cannot settle tasks
    /// claimed from the copy.
    ///
    /// # Errors
    /// When the target exists or cannot be written. *Unavailable* when a disk gave no
    /// sign for as long as the store's own is waited for ([`crate::Options`]): no file
    /// of that name is made then, also when it answers later. *Unknown* when it fell
    /// silent at the very end, over the name.
    pub async fn backup(&self, target: impl Into<PathBuf>) -> Result<()> {
        let (path, target) = (self.path.clone(), target.into());
        let store = format!("the backup of {} to {}", path.display(), target.display());
        self.watched(store, move |fate, signs| back_up(&path, &target, fate, signs)).await
    }

    /// Has a thread of its own do it, because copying takes long and readers are few;
    /// and looks whether it goes on.
    async fn watched(
        &self,
        what: String,
        work: impl FnOnce(&Fate, &Signs) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.is_open()?;
        let watchdog = Watchdog::start(what, 1, self.answer_within, Box::new(|| None))?;
        let (signs, fate) = (watchdog.signs(0), Fate::default());
        let (reply, answer) = oneshot::channel();
        signs.give();
        let copying = fate.clone();
        let started =
            std::thread::Builder::new().name("gristmill-backup".to_owned()).spawn(move || {
                let done = work(&copying, &signs);
                signs.end(true);
                let _ = reply.send(done);
            });
        started.map_err(|e| StoreError::unavailable("no thread could be started").caused_by(e))?;
        match watchdog.wait(answer).await {
            Some(Ok(done)) => done,
            Some(Err(_)) => {
                Err(StoreError::unavailable("the copying thread ended unexpectedly".to_owned()))
            }
            None if fate.is(GIVEN_UP) => Err(StoreError::unavailable(watchdog.why())),
            None => Err(StoreError::unknown(watchdog.why())),
        }
    }
}

fn back_up(path: &Path, target: &Path, fate: &Fate, signs: &Signs) -> Result<()> {
    if std::fs::symlink_metadata(target).is_ok() {
        return Err(taken(target));
    }
    signs.progress();
    sweep(target);
    let partial = partial_of(target)?;
    let copied = copy(path, target, &partial, fate, signs);
    if copied.is_err() {
        // Half a copy must not be taken for a whole one.
        let _ = std::fs::remove_file(&partial);
    }
    copied
}

fn copy(path: &Path, target: &Path, partial: &Path, fate: &Fate, signs: &Signs) -> Result<()> {
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
    signs.progress();
    let file = Arc::new(file);
    vacuum_into(path, partial, &file, fate, signs)?;
    signs.progress();
    let whole = file.metadata().map_err(cannot)?;
    let named = std::fs::symlink_metadata(partial).map_err(cannot)?;
    if (whole.dev(), whole.ino()) != (named.dev(), named.ino()) {
        let said = format!("{} was replaced while it was written", partial.display());
        return Err(StoreError::unavailable(said));
    }
    let mode = std::fs::metadata(path).map_err(cannot)?.permissions();
    file.set_permissions(mode).and_then(|()| file.sync_all()).map_err(cannot)?;
    signs.progress();
    if std::fs::symlink_metadata(target).is_ok() {
        return Err(taken(target));
    }
    if !fate.is(NAMED) {
        return Err(given_up(target));
    }
    std::fs::rename(partial, target).map_err(cannot)?;
    crate::open::sync_folder(target);
    Ok(())
}

fn vacuum_into(
    path: &Path,
    partial: &Path,
    file: &Arc<File>,
    fate: &Fate,
    signs: &Signs,
) -> Result<()> {
    let mut conn = crate::open::reader(path, PATIENCE)?;
    let (watched, copying, progress) = (file.clone(), fate.clone(), signs.clone());
    // The disk says it once, to whoever asks first.
    let failed = Arc::new(OnceLock::new());
    let failing = failed.clone();
    let mut synced = 0;
    let shown = conn.progress_handler(
        STEPS,
        Some(move || {
            progress.progress();
            let length = watched.metadata().map_or(0, |file| file.len());
            if length >= synced + SYNCED_EACH {
                synced = length;
                if let Err(error) = watched.sync_data() {
                    let _ = failing.set(error.kind());
                }
            }
            failing.get().is_some() || copying.is_given_up()
        }),
    );
    shown.map_err(|e| opening(e, path))?;
    // VACUUM INTO writes another file, which query_only counts as writing.
    let copied = conn
        .pragma_update(None, "query_only", false)
        .and_then(|()| conn.execute("VACUUM INTO ?1", params![partial.to_string_lossy()]));
    match failed.get() {
        Some(kind) => {
            let unsynced = io::Error::from(*kind);
            Err(StoreError::unavailable(partial.to_string_lossy()).caused_by(unsynced))
        }
        None => copied.map(drop).map_err(|e| opening(e, partial)),
    }
}

fn given_up(target: &Path) -> StoreError {
    StoreError::unavailable(format!("the copy to {} was given up", target.display()))
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use gristmill_core::Store;

    use super::*;
    use crate::Options;

    fn open(folder: &Path) -> SqliteStore {
        let within = Duration::from_millis(300);
        let options = Options { answer_within: within, busy_timeout: within, ..Options::default() };
        SqliteStore::open(folder.join("a.db"), options).expect("a store")
    }

    /// A disk that does not answer while the copy is written.
    #[tokio::test]
    async fn whoever_waits_for_a_backup_on_a_silent_disk_is_let_go_and_no_file_follows() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let target = folder.path().join("copy.db");
        let (path, to) = (store.path.clone(), target.clone());
        let (answers, silence) = channel::<()>();
        let (ended, end) = channel();
        let asked = Instant::now();
        let stuck = store.watched("the backup".to_owned(), move |fate, signs| {
            let _ = silence.recv();
            let done = back_up(&path, &to, fate, signs);
            let _ = ended.send(done.clone());
            done
        });
        let said = stuck.await.expect_err("nothing came");
        assert!(matches!(&said, StoreError::Unavailable(why) if why.contains("backup")));
        assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
        // The disk answers again, and the copy was given up.
        drop(answers);
        end.recv().expect("it goes on").expect_err("it was given up");
        let left = std::fs::read_dir(folder.path()).expect("a folder");
        let left: Vec<_> = left.map(|file| file.expect("a file").file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().contains("copy")), "{left:?}");
        store.backup(&target).await.expect("the next one");
        store.close().await.expect("it ends");
    }

    #[tokio::test]
    async fn a_silence_over_the_name_itself_leaves_the_outcome_unknown() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let (answers, silence) = channel::<()>();
        let stuck = store.watched("the backup".to_owned(), move |fate, _| {
            assert!(fate.is(NAMED));
            let _ = silence.recv();
            Ok(())
        });
        let said = stuck.await.expect_err("nothing came");
        assert!(matches!(said, StoreError::Unknown(_)), "{said}");
        drop(answers);
        store.close().await.expect("it ends");
    }
}
