//! Where a run takes place: which store, what can be done to it here, and why not
//! the rest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gristmill_conformance::crash;
use gristmill_conformance::judge::{Dice, FaultKind};

use crate::Result;
use crate::disk::Disk;
use crate::server::Database;

/// Which store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Files,
    /// A server of the run's own.
    Postgres,
    /// Somebody's, by its URL.
    Given(String),
}

impl Kind {
    pub(crate) fn read(store: &str) -> Self {
        match store {
            "memory:" | "memory" => Kind::Memory,
            "sqlite:" | "sqlite" => Kind::Sqlite,
            "files:" | "files" => Kind::Files,
            "postgres:" | "postgres" => Kind::Postgres,
            url => Kind::Given(url.to_owned()),
        }
    }

    /// What it is called in results: never a password.
    pub(crate) fn word(&self) -> String {
        match self {
            Kind::Memory => "memory".to_owned(),
            Kind::Sqlite => "sqlite".to_owned(),
            Kind::Files => "files".to_owned(),
            Kind::Postgres => "postgres".to_owned(),
            Kind::Given(url) => url
                .parse::<gristmill::StoreUrl>()
                .map_or_else(|_| "a store".to_owned(), |url| url.to_string()),
        }
    }

    /// Whether this fault can be done to it here; why not, if not.
    pub(crate) fn allows(&self, fault: FaultKind) -> std::result::Result<(), String> {
        let embedded = matches!(self, Kind::Sqlite | Kind::Files);
        match (self, fault) {
            (Kind::Memory, FaultKind::Join) => Ok(()),
            (Kind::Memory, _) => Err("the memory store lives in one process".to_owned()),
            (_, FaultKind::Kill | FaultKind::Stop | FaultKind::Join) => Ok(()),
            (_, FaultKind::Clock) if embedded => Ok(()),
            (_, FaultKind::Syscall) if embedded => crash::obstacle().map_or(Ok(()), Err),
            (_, FaultKind::Power | FaultKind::DiskFull) if embedded => root(),
            (
                Kind::Postgres,
                FaultKind::ServerKill
                | FaultKind::ServerFreeze
                | FaultKind::Cut
                | FaultKind::Stall
                | FaultKind::Promote,
            ) => Ok(()),
            (Kind::Postgres, FaultKind::OpenTransaction) => python(),
            (Kind::Given(_), _) => Err("only to a store of the run's own".to_owned()),
            (_, FaultKind::ServerKill | FaultKind::ServerFreeze | FaultKind::Promote) => {
                Err("the store has no server".to_owned())
            }
            (_, FaultKind::Cut | FaultKind::Stall) => {
                Err("the store has no connections".to_owned())
            }
            (_, FaultKind::OpenTransaction) => {
                Err("only PostgreSQL has callers' transactions here".to_owned())
            }
            (Kind::Postgres, _) => Err("its disk and clock are the server's".to_owned()),
            _ => Err("not with this store".to_owned()),
        }
    }

    /// What is done when nothing is said: everything that goes together. The disks
    /// and a tracer exclude each other, and so do a standby and a proxy.
    pub(crate) fn usual(&self) -> Vec<FaultKind> {
        let usual = [
            FaultKind::Kill,
            FaultKind::Stop,
            FaultKind::Join,
            FaultKind::ServerKill,
            FaultKind::ServerFreeze,
            FaultKind::Cut,
            FaultKind::Stall,
            FaultKind::OpenTransaction,
        ];
        usual.into_iter().filter(|fault| self.allows(*fault).is_ok()).collect()
    }
}

/// Whether there is Python, for clients over SQL.
pub(crate) fn python() -> std::result::Result<(), String> {
    let mut tool = Command::new("python3");
    let found = tool.arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.map(drop).map_err(|_| "python3 is missing: install the package python3".to_owned())
}

fn root() -> std::result::Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("needs root, to mount a disk".to_owned());
    }
    let mut tool = Command::new("xfs_io");
    let found = tool.arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.map(drop).map_err(|_| "xfs_io is missing: install the package xfsprogs".to_owned())
}

/// What the store stands on.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) disk: Option<Disk>,
    pub(crate) database: Option<Database>,
    /// The file that says how far the wall clock has jumped.
    pub(crate) clock: Option<PathBuf>,
    pub(crate) url: String,
}

impl Place {
    /// Makes it in the folder, for these faults.
    pub(crate) fn make(
        kind: &Kind,
        folder: &Path,
        faults: &[FaultKind],
        dice: &mut Dice,
    ) -> Result<Self> {
        let has = |fault| faults.contains(&fault);
        if has(FaultKind::Power) && has(FaultKind::DiskFull) {
            return Err("power and disk_full need different disks: name one".to_owned());
        }
        if has(FaultKind::Promote) && has(FaultKind::OpenTransaction) {
            return Err("promote and open_transaction do not go together: name one".to_owned());
        }
        if has(FaultKind::Promote) && has(FaultKind::Stall) {
            return Err("promote and stall do not go together: name one".to_owned());
        }
        let clock = has(FaultKind::Clock).then(|| folder.join("clock"));
        if let Some(file) = &clock {
            std::fs::write(file, "0").map_err(|error| error.to_string())?;
        }
        let disk = || {
            if has(FaultKind::Power) {
                Disk::image(folder, &mut dice.clone())
            } else if has(FaultKind::DiskFull) {
                Disk::small(folder)
            } else {
                Disk::plain(folder)
            }
        };
        let mut place = Place { disk: None, database: None, clock, url: String::new() };
        match kind {
            Kind::Memory => "memory:".clone_into(&mut place.url),
            Kind::Given(url) => url.clone_into(&mut place.url),
            Kind::Sqlite => {
                let disk = disk()?;
                place.url = format!("sqlite://{}", disk.place().join("judge.db").display());
                place.disk = Some(disk);
            }
            Kind::Files => {
                let disk = disk()?;
                place.url = format!("files://{}", disk.place().join("spool").display());
                place.disk = Some(disk);
            }
            Kind::Postgres => {
                let database = Database::start(has(FaultKind::Promote), has(FaultKind::Stall))?;
                place.url = database.url();
                place.database = Some(database);
            }
        }
        Ok(place)
    }
}
