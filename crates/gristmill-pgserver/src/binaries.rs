//! Finds the programs of the newest PostgreSQL on this machine, or of the one that
//! is asked for.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::run;
use crate::{Error, Result};

/// Names a folder with `initdb`, `pg_ctl` and `postgres` of some version.
const GIVEN: &str = "GRISTMILL_PG_BIN";

/// The folder with `initdb`, `pg_ctl` and `postgres`, and the one with `psql`, which
/// not every build of the server brings along.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    dir: PathBuf,
    psql: PathBuf,
    /// As in `15` or `16`.
    version: String,
    /// What tells its data directories from those of other builds.
    label: String,
}

impl Binaries {
    /// The folder that `GRISTMILL_PG_BIN` names, else `PG_CONFIG` when it is set,
    /// else the newest of the system's packages, else what `PATH` offers.
    pub(crate) fn find() -> Result<Self> {
        let given = env::var_os(GIVEN).map(PathBuf::from);
        let system = || -> Vec<PathBuf> {
            packaged(Path::new("/usr/lib/postgresql")).into_iter().chain(on_path()).collect()
        };
        let candidates = if let Some(dir) = &given {
            vec![dir.clone()]
        } else if let Some(config) = env::var_os("PG_CONFIG") {
            let said = run(Command::new(config).arg("--bindir"))?;
            vec![PathBuf::from(String::from_utf8_lossy(&said.stdout).trim())]
        } else {
            system()
        };
        let missing = || {
            Error::new(
                "PostgreSQL's server is not installed: install the package `postgresql` (14 or newer), or set PG_CONFIG",
            )
        };
        let dir = candidates.into_iter().find(|dir| is_server(dir)).ok_or_else(missing)?;
        let psql = std::iter::once(dir.clone())
            .chain(system())
            .find(|dir| dir.join("psql").is_file())
            .ok_or_else(missing)?;
        let said = run(Command::new(dir.join("postgres")).arg("--version"))?;
        let version = major(&String::from_utf8_lossy(&said.stdout));
        let label = if given.is_some() { format!("{version}-given") } else { version.clone() };
        Ok(Self { dir, psql, version, label })
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        if program == "psql" { self.psql.join(program) } else { self.dir.join(program) }
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Its version, told from another build's.
    pub(crate) fn label(&self) -> &str {
        &self.label
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

fn is_server(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres"].iter().all(|program| dir.join(program).is_file())
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
