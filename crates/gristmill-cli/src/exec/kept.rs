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

use crate::stderr;

/// The most that is read of a file: more than any store keeps, so that it is refused
/// and not cut.
const MOST: u64 = 1 << 20;

/// Where the files of this process's programs are.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptFiles(Arc<OnceLock<PathBuf>>);

impl KeptFiles {
    /// The file of one attempt, with what the attempts before kept.
    pub(super) fn of(&self, task: &ClaimedTask) -> io::Result<KeptFile> {
        let path = self.folder()?.join(format!("{}-{}", task.id, task.claims));
        if let Some(kept) = &task.checkpoint {
            fs::write(&path, &**kept)?;
        }
        let seen = look(&path);
        Ok(KeptFile { path, seen, is_told: false })
    }

    fn folder(&self) -> io::Result<&Path> {
        if let Some(folder) = self.0.get() {
            return Ok(folder);
        }
        let token = Token::random().map_err(io::Error::other)?;
        let folder = std::env::temp_dir().join(format!("gristmill-{token}"));
        // Nobody else's to read: what is kept is the application's.
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(self.0.get_or_init(|| folder))
    }
}

/// The file of one attempt.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    /// It was said that it cannot be kept.
    is_told: bool,
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
