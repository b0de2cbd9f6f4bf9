//! The bare limit: a hand-written spool that keeps each task as safe as the
//! store does, one at a time. The benchmark prints it beside every rate.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use gristmill_core::Result;

use crate::errors::At;
use crate::spool::Spool;

/// Folders with a file a task, and nothing around them. Who wrote the files
/// knows their names: no folder is listed.
#[derive(Debug)]
pub struct Bare {
    spool: Spool,
    written: u64,
    deleted: u64,
}

impl Bare {
    /// Makes the folders in a new one.
    ///
    /// # Errors
    /// When the folder is there or cannot be made.
    pub fn create(root: &Path) -> Result<Self> {
        for folder in ["", "tmp", "pending", "processing"] {
            let path = root.join(folder);
            fs::create_dir(&path).at(&path)?;
        }
        Ok(Bare { spool: Spool::new(root), written: 0, deleted: 0 })
    }

    fn at(&self, folder: &str, number: u64) -> PathBuf {
        self.spool.root().join(folder).join(format!("{number:012}"))
    }

    /// Writes files, each synced, renamed into its place, and the folder synced.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn put(&mut self, tasks: usize, payload: &[u8]) -> Result<()> {
        for _ in 0..tasks {
            self.written += 1;
            let aside = self.at("tmp", self.written);
            let mut file = File::create_new(&aside).at(&aside)?;
            file.write_all(payload).and_then(|()| file.sync_data()).at(&aside)?;
            fs::rename(&aside, self.at("pending", self.written)).at(&aside)?;
            self.spool.sync_folder(&self.spool.at("pending"))?;
        }
        Ok(())
    }

    /// Takes the next file by renaming it, reads it, deletes it and syncs the
    /// folder. Returns whether there was one.
    ///
    /// # Errors
    /// When the file cannot be moved, read or deleted.
    pub fn take(&mut self) -> Result<bool> {
        if self.deleted == self.written {
            return Ok(false);
        }
        self.deleted += 1;
        let (from, to) = (self.at("pending", self.deleted), self.at("processing", self.deleted));
        // Not synced by itself: a lost claim is only a redelivery. The journal
        // brings it to the disk before the deletion.
        fs::rename(&from, &to).at(&from)?;
        fs::read(&to).at(&to)?;
        fs::remove_file(&to).at(&to)?;
        self.spool.sync_folder(&self.spool.at("processing"))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken_in_order_and_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("bare");
        let mut bare = Bare::create(&root).unwrap();
        bare.put(2, b"x").unwrap();
        assert!(bare.take().unwrap());
        assert!(!root.join("pending/000000000001").exists());
        assert_eq!(fs::read(root.join("pending/000000000002")).unwrap(), b"x");
        assert!(bare.take().unwrap());
        assert!(!bare.take().unwrap());
        for folder in ["tmp", "pending", "processing"] {
            assert_eq!(fs::read_dir(root.join(folder)).unwrap().count(), 0, "{folder}");
        }
    }
}
