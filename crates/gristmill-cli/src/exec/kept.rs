//! What a program keeps for its task's next attempt: a file named by
//! `GRISTMILL_CHECKPOINT`, which has what the attempts before kept and which the
//! program may replace.
//!
//! One folder for all of this process's programs, made when the first one starts,
//! and a file only where something is kept: a task that keeps nothing costs a look
//! for a file that is not there.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use gristmill::Error;
use gristmill::port::{ClaimedTask, Token};
use gristmill::worker::Context;

use super::progress_file::ProgressFile;
use crate::stderr;

/// The most that is read of a file: more than any store keeps, so that it is refused
/// and not cut.
const MOST: u64 = 1 << 20;

/// Where the files of this process's programs are.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptFiles(Arc<Folder>);

/// Goes with the last handler that could need it, and the last file in it: a worker that
/// cron starts each minute would leave a thousand of them a day.
#[derive(Debug, Default)]
struct Folder(OnceLock<PathBuf>);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(folder) = self.0.get() {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl KeptFiles {
    /// The file of one attempt, with what the attempts before kept.
    pub(super) fn of(&self, task: &ClaimedTask) -> io::Result<KeptFile> {
        let path = self.folder()?.join(format!("{}-{}", task.id, task.claims));
        if let Some(kept) = &task.checkpoint {
            fs::write(&path, &**kept)?;
        }
        let seen = look(&path);
        Ok(KeptFile { path, seen, is_told: false, _folder: self.0.clone() })
    }

    /// Where a program says how far it is.
    pub(super) fn progress_of(&self, task: &ClaimedTask) -> io::Result<ProgressFile> {
        let name = format!("{}-{}.progress", task.id, task.claims);
        Ok(ProgressFile::at(self.folder()?.join(name)))
    }

    fn folder(&self) -> io::Result<&Path> {
        let known = &self.0.0;
        if let Some(folder) = known.get() {
            return Ok(folder);
        }
        let token = Token::random().map_err(io::Error::other)?;
        let folder = std::env::temp_dir().join(format!("gristmill-{token}"));
        // Nobody else's to read: what is kept is the application's.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let first = known.get_or_init(|| folder.clone());
        if *first != folder {
            // Another program began at the same time.
            let _ = fs::remove_dir(folder);
        }
        Ok(first)
    }
}

/// The file of one attempt.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    /// It was said that it cannot be kept.
    is_told: bool,
    /// After the file, which lies in it.
    _folder: Arc<Folder>,
}

/// What tells whether a file was replaced.
fn look(path: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

impl KeptFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps what the file has, if the program replaced it. What cannot be kept is
    /// said once and is not the task's end: its next attempt begins further back.
    pub(super) async fn keep(&mut self, context: &Context) {
        let now = look(&self.path);
        if now.is_none() || now == self.seen {
            return;
        }
        let kept = match read(&self.path) {
            Ok(bytes) => context.keep(bytes).await.map_err(|error| match error {
                // Its program is about to be stopped for it.
                Error::LeaseLost => String::new(),
                error => error.to_string(),
            }),
            Err(error) => Err(error.to_string()),
        };
        match kept {
            Ok(()) => self.seen = now,
            Err(why) if !self.is_told && !why.is_empty() => {
                self.is_told = true;
                let said = format!("task {}: its checkpoint was not kept: {why}\n", context.id);
                stderr::show(said.into_bytes());
            }
            Err(_) => {}
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// The folder lies where everybody may write.
    #[test]
    fn nobody_else_may_look_into_it() {
        let (one, other) = (KeptFiles::default(), KeptFiles::default());
        let folder = one.folder().unwrap();
        let found = fs::symlink_metadata(folder).unwrap();
        assert!(found.is_dir());
        assert_eq!(found.mode() & 0o7777, 0o700);
        assert_eq!(one.folder().unwrap(), folder, "one for all of a process's programs");
        assert_ne!(other.folder().unwrap(), folder, "nobody can know it beforehand");
        // One that somebody else made meanwhile is not taken.
        let again = DirBuilder::new().mode(0o700).create(folder).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        let folder = folder.to_owned();
        drop((one, other));
        assert!(!folder.exists(), "nothing is left of it");
    }
}
