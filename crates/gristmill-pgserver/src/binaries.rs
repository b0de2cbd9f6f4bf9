//! Finds the programs of the newest PostgreSQL on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::run;
use crate::{Error, Result};

/// The folder with `initdb`, `pg_ctl`, `postgres` and `psql`.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    dir: PathBuf,
    /// As in `15` or `16`.
    version: String,
}

impl Binaries {
    /// `PG_CONFIG` when it is set, else the newest of the system's packages,
    /// else what `PATH` offers.
    pub(crate) fn find() -> Result<Self> {
        let candidates = if let Some(config) = env::var_os("PG_CONFIG") {
            let said = run(Command::new(config).arg("--bindir"))?;
            vec![PathBuf::from(String::from_utf8_lossy(&said.stdout).trim())]
        } else {
            packaged(Path::new("/usr/lib/postgresql")).into_iter().chain(on_path()).collect()
        };
        let dir = candidates.into_iter().find(|dir| is_complete(dir)).ok_or_else(|| {
            Error::new(
                "PostgreSQL's server is not installed: install the package `postgresql` (14 or newer), or set PG_CONFIG",
            )
        })?;
        let said = run(Command::new(dir.join("postgres")).arg("--version"))?;
        let version = major(&String::from_utf8_lossy(&said.stdout));
        Ok(Self { dir, version })
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.dir.join(program)
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// The `bin` folders below a folder of versions, newest first.
fn packaged(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, bin)| bin).collect()
}

fn on_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn is_complete(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|program| dir.join(program).is_file())
}

/// `16` from `postgres (PostgreSQL) 16.2 (Debian ...)`.
fn major(said: &str) -> String {
    let number =
        said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    number
        .map(|number| number.chars().take_while(char::is_ascii_digit).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{major, packaged};

    #[test]
    fn the_newest_version_comes_first_by_number() {
        let root = std::env::temp_dir().join(format!("pgserver-versions-{}", std::process::id()));
        for version in ["9", "15", "common", "14"] {
            std::fs::create_dir_all(root.join(version).join("bin")).unwrap();
        }
        let found = packaged(&root);
        std::fs::remove_dir_all(&root).unwrap();
        let wanted: Vec<_> = ["15", "14", "9"].iter().map(|v| root.join(v).join("bin")).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), "15");
        assert_eq!(major("postgres (PostgreSQL) 18beta1\n"), "18");
    }
}
