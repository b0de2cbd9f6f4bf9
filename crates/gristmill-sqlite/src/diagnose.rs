//! The store's own part of `doctor`: damage, dropped subjects, and files that
//! have grown out of proportion.

use std::path::{Path, PathBuf};

use gristmill_core::{Diagnosis, Result};

use crate::SqliteStore;
use crate::db::Db;
use crate::errors::fault;

/// Free pages worth giving back: half of a file of this size.
const BLOAT_BYTES: u64 = 64 << 20;
/// SQLite begins the log anew at a few megabytes unless a reader holds it.
const LOG_BYTES: u64 = 256 << 20;

impl SqliteStore {
    /// What is not as it should be.
    pub(crate) async fn look_over(&self) -> Result<Vec<Diagnosis>> {
        let mut found: Vec<Diagnosis> = self.check().await?.into_iter().map(told).collect();
        let (pages, free, size) = self.read(|db, _| pages(db)).await?;
        found.extend(bloat(pages, free, size));
        let log = log_of(self.path());
        let log_bytes = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
        found.extend(long_log(&log, log_bytes));
        Ok(found)
    }
}

fn told(finding: crate::Finding) -> Diagnosis {
    let words = finding.0;
    if words.contains("is bound to table") {
        let remedy = "make the table again, or declare the queue without 'bind'; puts are refused \
                      until then";
        Diagnosis::grave("subject_gone", words, remedy)
    } else {
        let remedy = "make a copy of the file, then restore a backup";
        Diagnosis::grave("damaged", words, remedy)
    }
}

fn pages(db: &Db<'_>) -> Result<(u64, u64, u64)> {
    let pragma = |name: &str| -> Result<u64> {
        let value: i64 =
            db.conn().pragma_query_value(None, name, |row| row.get(0)).map_err(fault)?;
        Ok(u64::try_from(value).unwrap_or(0))
    };
    Ok((pragma("page_count")?, pragma("freelist_count")?, pragma("page_size")?))
}

fn bloat(pages: u64, free: u64, size: u64) -> Option<Diagnosis> {
    (pages * size >= BLOAT_BYTES && free * 2 > pages).then(|| {
        Diagnosis::note(
            "bloat",
            format!("{} of the file's {} MiB are free", (free * size) >> 20, (pages * size) >> 20),
            "nothing has to be done: the room is used again; VACUUM gives it back while no worker runs",
        )
    })
}

fn long_log(log: &Path, bytes: u64) -> Option<Diagnosis> {
    (bytes >= LOG_BYTES).then(|| {
        Diagnosis::note(
            "long_log",
            format!("{} has {} MiB", log.display(), bytes >> 20),
            "a reader holds an old snapshot: look for a program with an open transaction on the file",
        )
    })
}

fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_large_and_half_empty_is_bloat() {
        let size = 4096;
        assert_eq!(bloat(100, 90, size), None);
        assert_eq!(bloat(20_000, 5_000, size), None);
        assert!(
            bloat(20_000, 15_000, size).is_some_and(|d| d.found.contains("58 of the file's 78"))
        );
    }

    #[test]
    fn a_long_log_names_its_file() {
        let log = log_of(Path::new("a.db"));
        assert_eq!(long_log(&log, 1 << 20), None);
        assert!(long_log(&log, 300 << 20).is_some_and(|d| d.found == "a.db-wal has 300 MiB"));
    }
}
