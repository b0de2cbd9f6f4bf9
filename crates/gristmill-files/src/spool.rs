//! The folder: what lies where, how a task's file is named, and the few steps
//! on files that everything else is made of.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gristmill_core::{Result, State, StoreError, TaskId};
use rustix::fs::OFlags;

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
/// Files on their way.
const TMP: &str = "tmp";
/// What could not be read.
pub(crate) const CORRUPT: &str = "corrupt";

/// The folders a new spool has.
const FOLDERS: [&str; 7] = ["pending", "processing", "failed", "done", INTENT, TMP, CORRUPT];

/// A spool's folder.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    root: PathBuf,
}

impl Spool {
    pub(crate) fn new(root: &Path) -> Self {
        Spool { root: root.to_owned() }
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
        self.at(TMP).join(format!("{:012}", id.0))
    }

    /// Makes sure that this is a spool's folder that this program can use; a
    /// new one only when asked for. The lock is held meanwhile.
    pub(crate) fn begin(&self, create: bool) -> Result<Begun> {
        match std::fs::read_to_string(self.at(MARKER)) {
            Ok(text) => {
                self.check_format(&text)?;
                Ok(Begun::Known)
            }
            Err(error) if error.kind() == ErrorKind::NotFound && create => {
                for name in FOLDERS {
                    make_folder(&self.at(name))?;
                }
                Ok(Begun::New)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.no_spool()),
            Err(error) => Err(fault(&self.at(MARKER), &error)),
        }
    }

    /// Says that the folder is a spool now: the last step of making one.
    pub(crate) fn mark(&self) -> Result<()> {
        let text = format!("gristmill spool {FORMAT}\n");
        self.replace(MARKER, text.as_bytes())
    }

    fn check_format(&self, text: &str) -> Result<()> {
        let found = text.strip_prefix("gristmill spool ").and_then(|n| n.trim().parse().ok());
        match found {
            Some(FORMAT) => Ok(()),
            Some(found) if found > FORMAT => Err(StoreError::NewerSchema { found, known: FORMAT }),
            _ => Err(self.no_spool()),
        }
    }

    pub(crate) fn no_spool(&self) -> StoreError {
        StoreError::NotAStore(format!("{} is not a spool folder", self.root.display()))
    }

    /// Makes the folder itself, unless something else is there.
    pub(crate) fn make_root(&self, create: bool) -> Result<()> {
        let shown = self.root.display();
        match std::fs::metadata(&self.root) {
            Ok(found) if !found.is_dir() => {
                Err(StoreError::NotAStore(format!("{shown} is a file, not a spool folder")))
            }
            // Whoever only looks leaves no lock in a folder that is no spool.
            Ok(_) if !create && !self.at(MARKER).exists() => {
                Err(StoreError::NotAStore(format!("there is no store in {shown}")))
            }
            Ok(_) => self.only_ours(),
            Err(error) if error.kind() == ErrorKind::NotFound && create => make_folder(&self.root),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(StoreError::NotAStore(format!("there is no spool folder at {shown}")))
            }
            Err(error) => Err(fault(&self.root, &error)),
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
                return Err(StoreError::NotAStore(format!(
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
        let (aside, path) = (self.at(TMP).join(name), self.at(name));
        let mut file = create(&aside).at(&aside)?;
        io::Write::write_all(&mut file, bytes).at(&aside)?;
        file.sync_all().at(&aside)?;
        std::fs::rename(&aside, &path).at(&path)?;
        sync_folder(&self.root)
    }

    /// Deletes what was on its way when a process ended.
    pub(crate) fn clear_aside(&self) -> Result<()> {
        let folder = self.at(TMP);
        for entry in std::fs::read_dir(&folder).at(&folder)? {
            let path = entry.at(&folder)?.path();
            std::fs::remove_file(&path).at(&path)?;
        }
        Ok(())
    }

    /// Makes everything in the folder's file system durable in one step.
    #[cfg(target_os = "linux")]
    pub(crate) fn sync_everything(&self) -> Result<()> {
        let folder = File::open(&self.root).at(&self.root)?;
        rustix::fs::syncfs(folder).map_err(|error| fault(&self.root, &error.into()))
    }
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

/// Makes a folder for its owner's eyes only.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other.at(path),
    }
}

/// A new or emptied file for its owner's eyes only. A link planted in its
/// place is not followed.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Opens a file for reading; not through a link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    options().read(true).open(path)
}

/// Opens a file that is there for reading and writing; not through a link.
pub(crate) fn open_known(path: &Path) -> io::Result<File> {
    options().read(true).write(true).open(path)
}

/// Opens or makes a file for reading and writing; not through a link.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create(true).truncate(false).open(path)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).at(path)
}

/// Gives a file its name, making the folder it goes to when it is missing.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let Some(folder) = to.parent().filter(|folder| !folder.exists()) else {
                return Err(error);
            };
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            std::fs::rename(from, to)
        }
        other => other,
    }
}

/// Deletes a file; one that is not there is as good as deleted.
pub(crate) fn unlink(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
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
