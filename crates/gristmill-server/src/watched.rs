//! Files that are looked at now and then, to see that somebody changed one.
//!
//! Two looks a second are cheap, work on every file system, and see what replaces a file
//! or the link to it, which notices of the operating system about a file do not.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// How often they are looked at.
pub const LOOK: Duration = Duration::from_millis(500);

/// What changes when a file does: its number, size and times.
type Stamp = Option<(u64, u64, i64, i64, i64, i64)>;

/// Files, as they were when they were read.
#[derive(Debug, Default)]
pub struct Watched {
    files: Vec<PathBuf>,
    read: Vec<Stamp>,
    /// As they were at the last look.
    last: Vec<Stamp>,
}

impl Watched {
    /// As they are now.
    #[must_use]
    pub fn new(files: Vec<PathBuf>) -> Self {
        let read = stamps(&files);
        Watched { files, last: read.clone(), read }
    }

    /// Whether one has changed and all were at rest since the last look: a file that
    /// is being written is not half read.
    pub fn look(&mut self) -> bool {
        let now = stamps(&self.files);
        let rests = now == self.last;
        self.last = now;
        rests && self.last != self.read
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let about = std::fs::metadata(file).ok()?;
        Some((
            about.ino(),
            about.len(),
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec(),
        ))
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once_the_file_rests() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a");
        let mut watched = Watched::new(vec![file.clone()]);
        assert!(!watched.look());
        std::fs::write(&file, "1").expect("written");
        assert!(!watched.look(), "it may still be written");
        assert!(watched.look());
        let mut watched = Watched::new(vec![file.clone()]);
        std::fs::write(folder.path().join("b"), "2").expect("written");
        std::fs::rename(folder.path().join("b"), &file).expect("replaced");
        assert!(!watched.look() && watched.look(), "one that replaces it is a change");
        std::fs::remove_file(&file).expect("removed");
        assert!(!watched.look() && watched.look(), "and so is its end");
    }
}
