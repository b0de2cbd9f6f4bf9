//! The folder: what lies where, and how a task's file is named.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_core::{Result, State, StoreError, TaskId, Token};

use crate::disk::{Disk, Plain, open_own};
use crate::errors::{At, fault};

/// The format this program writes, and the newest it knows.
pub(crate) const FORMAT: i64 = 1;
/// The file that says what the folder is.
const MARKER: &str = "gristmill-spool";
/// Held by whoever changes or reads the folder.
pub(crate) const LOCK: &str = "lock";
/// Held, shared, by everyone who has the folder open.
pub(crate) const PRESENT: &str = "present";
/// What is known beside the tasks, as of the last checkpoint.
pub(crate) const STATE: &str = "state";
/// What was decided since then.
pub(crate) const INTENT: &str = "intent";
/// Callers' ids.
pub(crate) const IDS: &str = "ids";
/// Files on their way.
const TMP: &str = "tmp";
/// What could not be read.
pub(crate) const CORRUPT: &str = "corrupt";

/// The folders a new spool has.
const FOLDERS: [&str; 8] = ["pending", "processing", "failed", "done", INTENT, IDS, TMP, CORRUPT];

/// A spool's folder.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    root: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    /// Part of every checksum in the intent, and known only to who may read the
    /// folder.
    pub(crate) secret: [u8; 16],
    /// The folder itself, as it was when it was opened.
    pub(crate) folder: Option<Arc<File>>,
    /// Which file its lock was, when it was opened.
    lock: Option<(u64, u64)>,
}

impl Spool {
    pub(crate) fn new(root: &Path) -> Self {
        Spool::on(root, Arc::new(Plain))
    }

    /// A folder on a disk that may be a test's.
    pub(crate) fn on(root: &Path, disk: Arc<dyn Disk>) -> Self {
        Spool { root: root.to_owned(), disk, secret: [0; 16], folder: None, lock: None }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A folder of tasks.
    pub(crate) fn folder(&self, state: State) -> PathBuf {
        self.root.join(state.as_str())
    }

    /// Where a task's file lies. Neighbours share a folder of at most some
    /// hundred files, so that what one call writes is synced together.
    pub(crate) fn task(&self, state: State, id: TaskId, queue: &str) -> PathBuf {
        self.folder(state).join(shard(id)).join(file_name(id, queue))
    }

    /// Where a task's file is written before it takes its place.
    pub(crate) fn aside(&self, id: TaskId) -> PathBuf {
        self.on_its_way(&format!("{:012}", id.0))
    }

    /// Where something is written that has no place yet.
    pub(crate) fn on_its_way(&self, name: &str) -> PathBuf {
        self.at(TMP).join(name)
    }

    /// Opens the folder; its lock's file comes back.
    pub(crate) fn hold(&mut self) -> Result<File> {
        self.folder = Some(Arc::new(File::open(&self.root).at(&self.root)?));
        let path = self.at(LOCK);
        let lock = open_own(&path).at(&path)?;
        self.lock = Some(which(&lock.metadata().at(&path)?));
        Ok(lock)
    }

    /// That the folder still stands where it was opened: what is written into
    /// one that was moved, deleted or replaced is lost, and half of it would go
    /// to the one in its place.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn in_place(&self) -> Result<()> {
        let found = std::fs::metadata(self.at(LOCK)).ok().map(|found| which(&found));
        if found == self.lock { Ok(()) } else { Err(self.moved()) }
    }

    pub(crate) fn moved(&self) -> StoreError {
        StoreError::unavailable(format!(
            "{} was moved, deleted or replaced since it was opened; open it again",
            self.root.display()
        ))
    }

    /// Makes sure that this is a spool's folder that this program can use; a
    /// new one only when asked for. The lock is held meanwhile.
    pub(crate) fn begin(&mut self, create: bool) -> Result<Begun> {
        match std::fs::read_to_string(self.at(MARKER)) {
            Ok(text) => {
                self.secret = self.check_format(&text)?;
                Ok(Begun::Known)
            }
            Err(error) if error.kind() == ErrorKind::NotFound && create => {
                for name in FOLDERS {
                    self.make_folder(&self.at(name)).at(&self.at(name))?;
                }
                self.secret = Token::random()?.to_bytes();
                Ok(Begun::New)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.no_spool()),
            Err(error) => Err(fault(&self.at(MARKER), error)),
        }
    }

    /// Says that the folder is a spool now: the last step of making one.
    pub(crate) fn mark(&self) -> Result<()> {
        let secret = Token::from_bytes(self.secret);
        let text = format!("gristmill spool {FORMAT}\n{secret}\n");
        self.replace(MARKER, text.as_bytes())
    }

    fn check_format(&self, text: &str) -> Result<[u8; 16]> {
        let mut lines = text.strip_prefix("gristmill spool ").unwrap_or_default().lines();
        let found = lines.next().and_then(|n| n.trim().parse().ok());
        let secret = lines.next().and_then(|secret| secret.parse::<Token>().ok());
        match (found, secret) {
            (Some(FORMAT), Some(secret)) => Ok(secret.to_bytes()),
            (Some(found), _) if found > FORMAT => {
                Err(StoreError::NewerSchema { found, known: FORMAT })
            }
            _ => Err(self.no_spool()),
        }
    }

    pub(crate) fn no_spool(&self) -> StoreError {
        StoreError::not_a_store(format!("{} is not a spool folder", self.root.display()))
    }

    /// Makes the folder itself, unless something else is there.
    pub(crate) fn make_root(&self, create: bool) -> Result<()> {
        let shown = self.root.display();
        match std::fs::metadata(&self.root) {
            Ok(found) if !found.is_dir() => {
                Err(StoreError::not_a_store(format!("{shown} is a file, not a spool folder")))
            }
            // Whoever only looks leaves no lock in a folder that is no spool.
            Ok(_) if !create && !self.at(MARKER).exists() => {
                Err(StoreError::not_a_store(format!("there is no store in {shown}")))
            }
            Ok(_) => self.only_ours(),
            Err(error) if error.kind() == ErrorKind::NotFound && create => {
                self.make_folder(&self.root).at(&self.root)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(StoreError::not_a_store(format!("there is no spool folder at {shown}")))
            }
            Err(error) => Err(fault(&self.root, error)),
        }
    }

    /// A folder without our mark may be one whose making was interrupted. One
    /// with anything else in it belongs to somebody.
    fn only_ours(&self) -> Result<()> {
        if self.at(MARKER).exists() {
            return Ok(());
        }
        for entry in std::fs::read_dir(&self.root).at(&self.root)? {
            let name = entry.at(&self.root)?.file_name();
            let known = name.to_str().is_some_and(|name| {
                FOLDERS.contains(&name) || [LOCK, PRESENT, STATE].contains(&name)
            });
            if !known {
                return Err(StoreError::not_a_store(format!(
                    "{} is not a spool folder and holds other things ({})",
                    self.root.display(),
                    name.display()
                )));
            }
        }
        Ok(())
    }

    /// Writes a file of the root whole, or leaves the old one.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.replace_in("", name, bytes)
    }

    /// As [`Spool::replace`], in a folder of the root.
    pub(crate) fn replace_in(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<()> {
        let (aside, path) = (self.on_its_way(&name.replace('/', "-")), self.at(name));
        let file = self.write_new(&aside, bytes).at(&aside)?;
        self.sync_file(&aside, &file).at(&aside)?;
        self.rename(&aside, &path).at(&path)?;
        self.sync_folder(&if folder.is_empty() { self.root.clone() } else { self.at(folder) })
    }

    /// Deletes what was on its way when a process ended.
    pub(crate) fn clear_aside(&self) -> Result<()> {
        let folder = self.at(TMP);
        for entry in std::fs::read_dir(&folder).at(&folder)? {
            let path = entry.at(&folder)?.path();
            self.unlink(&path).at(&path)?;
        }
        Ok(())
    }
}

/// Which file it is, whatever its name.
pub(crate) fn which(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Whether the folder was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    Known,
    New,
}

/// The folder within a state's folder.
pub(crate) fn shard(id: TaskId) -> String {
    format!("{:02x}", (id.0 >> 8) & 0xff)
}

/// A task's file name: its id and its queue. Queue names have letters that
/// are safe in a path and nothing else; any other letter is written in
/// hexadecimal all the same, because a path must not rest on that.
pub(crate) fn file_name(id: TaskId, queue: &str) -> String {
    use std::fmt::Write;
    let mut name = format!("{:012}-", id.0);
    for byte in queue.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-.".contains(&byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}

/// The id in a task's file name.
pub(crate) fn id_of(name: &str) -> Option<TaskId> {
    let (id, queue) = name.split_once('-')?;
    let id = id.parse().ok().filter(|id| *id > 0).map(TaskId)?;
    (!queue.is_empty() && name == file_name(id, queue)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_becomes_a_path() {
        for queue in ["emails", "../../etc", "a/b", "a\0b", "naïve", "%2f"] {
            let name = file_name(TaskId(42), queue);
            assert!(!name.contains(['/', '\0']) && name.starts_with("000000000042-"), "{name}");
        }
        assert_eq!(id_of(&file_name(TaskId(42), "emails")), Some(TaskId(42)));
        for foreign in ["", "42", "000000000042", "000000000042-", "x-emails", "notes.txt", "42-a"]
        {
            assert_eq!(id_of(foreign), None, "{foreign}");
        }
    }
}
