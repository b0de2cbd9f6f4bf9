//! The steps on the disk that everything else is made of, each of which can
//! fail. They go through one place, so that a test can let any of them fail and
//! knows what a power cut would leave.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use gristmill_core::{Result, Signs};
use rustix::fs::OFlags;

use crate::errors::{At, fault};
use crate::spool::Spool;

/// A step that changes the disk or makes a change durable.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "what it is about is for tests"))]
pub(crate) enum Step<'a> {
    MakeFolder(&'a Path),
    /// A new or emptied file.
    Make(&'a Path),
    Write {
        path: &'a Path,
        file: &'a File,
        at: u64,
        bytes: &'a [u8],
    },
    Shorten,
    Rename(&'a Path, &'a Path),
    Unlink(&'a Path),
    SyncFile(&'a Path),
    SyncFolder(&'a Path),
    /// The whole file system.
    SyncAll,
}

/// Who takes the steps.
pub(crate) trait Disk: std::fmt::Debug + Send + Sync {
    /// Takes a step, by doing `act`.
    fn step(&self, step: Step<'_>, act: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

    /// It has answered a long reading again.
    fn answers(&self) {}
}

/// The disk as it is.
#[derive(Debug)]
pub(crate) struct Plain;

impl Disk for Plain {
    fn step(&self, _: Step<'_>, act: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        act()
    }
}

/// A disk whose every step is a sign: one that does not come back is noticed.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) signs: Signs,
}

impl Disk for Watched {
    fn step(&self, step: Step<'_>, act: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        // Syncing everything is left to a thread of its own, which nobody waits for.
        let waited_for = !matches!(step, Step::SyncAll);
        let done = self.disk.step(step, act);
        if waited_for {
            self.signs.progress();
        }
        done
    }

    fn answers(&self) {
        self.signs.progress();
    }
}

impl Spool {
    fn step<T>(&self, step: Step<'_>, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut done = None;
        self.disk.step(step, &mut || {
            done = Some(act()?);
            Ok(())
        })?;
        done.ok_or_else(|| io::Error::other("a step was not taken"))
    }

    /// Makes a folder for its owner's eyes only.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        let made = self.step(Step::MakeFolder(path), || DirBuilder::new().mode(0o700).create(path));
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }

    /// A new or emptied file for its owner's eyes only. A link planted in its
    /// place is not followed.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        self.step(Step::Make(path), || options().write(true).create(true).truncate(true).open(path))
    }

    /// Writes a new file whole.
    pub(crate) fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<File> {
        let file = self.create(path)?;
        self.write_at(path, &file, 0, bytes)?;
        Ok(file)
    }

    /// Writes at a place in a file.
    pub(crate) fn write_at(
        &self,
        path: &Path,
        file: &File,
        at: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.step(Step::Write { path, file, at, bytes }, || file.write_all_at(bytes, at))
    }

    /// Cuts a file's end off.
    pub(crate) fn shorten(&self, file: &File, length: u64) -> io::Result<()> {
        self.step(Step::Shorten, || file.set_len(length))
    }

    /// Makes a file's bytes durable.
    pub(crate) fn sync_file(&self, path: &Path, file: &File) -> io::Result<()> {
        self.step(Step::SyncFile(path), || file.sync_data())
    }

    /// Makes the names in a folder durable.
    pub(crate) fn sync_folder(&self, path: &Path) -> Result<()> {
        self.step(Step::SyncFolder(path), || File::open(path)?.sync_all()).at(path)
    }

    /// Makes everything in the folder's file system durable in one step.
    #[cfg(target_os = "linux")]
    pub(crate) fn sync_everything(&self) -> Result<()> {
        // Through a handle that is older than what it syncs: a new one is not
        // told of what failed before.
        let Some(folder) = &self.folder else {
            return Err(fault(self.root(), ErrorKind::NotFound.into()));
        };
        self.step(Step::SyncAll, || Ok(rustix::fs::syncfs(folder)?)).at(self.root())
    }

    /// Gives a file its name, making the folder it goes to when it is missing.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let renamed = self.step(Step::Rename(from, to), || std::fs::rename(from, to));
        match renamed {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let Some(folder) = to.parent().filter(|folder| !folder.exists()) else {
                    return Err(error);
                };
                self.make_folder(folder)?;
                self.step(Step::Rename(from, to), || std::fs::rename(from, to))
            }
            other => other,
        }
    }

    /// Deletes a file; one that is not there is as good as deleted.
    pub(crate) fn unlink(&self, path: &Path) -> io::Result<()> {
        match self.step(Step::Unlink(path), || std::fs::remove_file(path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
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

/// Writes on at a place in a file.
pub(crate) struct Appending<'a> {
    pub(crate) spool: &'a Spool,
    pub(crate) path: &'a Path,
    pub(crate) file: &'a File,
    pub(crate) at: u64,
}

impl Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.spool.write_at(self.path, self.file, self.at, bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
