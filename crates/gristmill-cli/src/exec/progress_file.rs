//! How far a program is: a file named by `GRISTMILL_PROGRESS`, of which the last line
//! counts (`12/100 rows`, `40% fetched`, `12 rows`, or words alone). It may be written
//! anew or added to.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gristmill::Progress;
use gristmill::worker::Context;

/// How much of the file's end is looked at.
const END: u64 = 4096;

/// The file of one attempt.
#[derive(Debug)]
pub(super) struct ProgressFile {
    path: PathBuf,
    said: Option<Progress>,
}

impl ProgressFile {
    pub(super) const fn at(path: PathBuf) -> Self {
        ProgressFile { path, said: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Passes on what the program says by now, if it is something else than before. What
    /// cannot be read is nothing: nobody's work depends on it.
    pub(super) fn tell(&mut self, context: &Context) {
        let Ok(Some(said)) = last_line(&self.path) else { return };
        if self.said.as_ref() != Some(&said) {
            context.progress(said.done(), said.total(), said.message());
            self.said = Some(said);
        }
    }
}

/// The last line that says anything.
fn last_line(path: &Path) -> io::Result<Option<Progress>> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end)?;
    let text = String::from_utf8_lossy(&end);
    Ok(text.lines().rev().find_map(|line| line.parse().ok()))
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_says_anything_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        assert!(last_line(&path).is_err(), "there is none yet");
        for (text, said) in [
            ("", None),
            ("\n \n", None),
            ("1/2 a", Some("1/2 a")),
            ("1/2 a\n2/2 b\n\n", Some("2/2 b")),
            ("\r\n40%\r\n", Some("40/100")),
        ] {
            fs::write(&path, text).unwrap();
            let found = last_line(&path).unwrap().map(|said| said.to_string());
            assert_eq!(found.as_deref(), said, "{text:?}");
        }
        fs::write(&path, format!("{}\n7/8 end", "x".repeat(1 << 20))).unwrap();
        assert_eq!(last_line(&path).unwrap().unwrap().to_string(), "7/8 end");
    }
}
