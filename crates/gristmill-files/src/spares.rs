//! Files of tasks that are gone, kept for tasks that come.
//!
//! Some file systems do not give a deleted file's place to a new one for minutes, and
//! look past all of those each time one is made: beside a worker that deletes
//! thousands, making a file takes ten times as long. Writing over one does not.
//!
//! Only what a synced frame has ended may be kept: until then, a power cut would bring
//! its task back, with another one's bytes.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gristmill_core::{TaskId, Token};

use crate::disk::open_known;
use crate::spool::Spool;

/// Most files that are kept, and the largest of them.
const MOST: usize = 2_048;
const LARGEST: u64 = 16 << 10;

/// The spare files of one process.
#[derive(Debug)]
pub(crate) struct Spares {
    spool: Spool,
    /// Part of their names: no two processes have the same.
    own: Option<Token>,
    made: u64,
    files: Vec<PathBuf>,
}

/// Where files of a frame stand that are not where new ones would.
pub(crate) type Staged = HashMap<TaskId, PathBuf>;

impl Spares {
    pub(crate) fn new(spool: &Spool) -> Self {
        // Without a name of its own it keeps none.
        Spares { spool: spool.clone(), own: Token::random().ok(), made: 0, files: Vec::new() }
    }

    /// Keeps a file or deletes it; one that is not there is as good as deleted.
    pub(crate) fn take(&mut self, path: &Path) -> io::Result<()> {
        let Some(own) = self.own.filter(|_| self.files.len() < MOST && is_plain(path)) else {
            return self.spool.unlink(path);
        };
        let spare = self.spool.on_its_way(&format!("spare-{own}-{}", self.made));
        match self.spool.rename(path, &spare) {
            Ok(()) => {
                self.made += 1;
                self.files.push(spare);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes over a spare file, if there is one; its path comes back.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        let Some(path) = self.files.pop() else { return Ok(None) };
        // Whatever happened to it, a new file will do.
        let Ok(file) = open_known(&path) else { return Ok(None) };
        let written = self
            .spool
            .write_at(&path, &file, 0, bytes)
            .and_then(|()| self.spool.shorten(&file, bytes.len() as u64));
        if let Err(error) = written {
            let _ = self.spool.unlink(&path);
            return Err(error);
        }
        Ok(Some(path))
    }

    /// Deletes them: there is no room, or this is the end.
    pub(crate) fn give_back(&mut self) {
        for path in self.files.drain(..) {
            // What stays is deleted at the next opening.
            let _ = self.spool.unlink(&path);
        }
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Whether it is a file as this store makes them, with no other name: somebody's copy
/// of the folder may be made of links.
fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| {
        file.is_file()
            && file.nlink() == 1
            && file.mode() & 0o777 == 0o600
            && file.len() <= LARGEST
            && file.uid() == rustix::process::geteuid().as_raw()
    })
}
