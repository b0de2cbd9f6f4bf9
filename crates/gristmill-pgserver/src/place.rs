//! Where servers keep their files, and the locks around them.
//!
//! Everything stands below one folder in cargo's target directory:
//!
//! | path | what |
//! |---|---|
//! | `start.lock` | held while the shared server is looked for or started |
//! | `use.lock` | held, shared, by every process that uses the shared server |
//! | `current-<version>` | the folder of the shared server's present life |
//! | `seed-<version>/` | a data directory as `initdb` leaves it |
//! | `run-<id>/` | one server's life: data, socket, logs |
//!
//! Locks are the kernel's (`flock`), so a killed process frees its own.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::account::Account;
use crate::{Error, Result};

/// The longest socket path a kernel takes is 107 bytes; the names of a run's
/// folder and of the socket in it (`.s.PGSQL.54321`) need up to 45.
const LONGEST_ROOT: usize = 62;

/// The folder of all servers of this target directory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    root: PathBuf,
    account: Account,
}

impl Place {
    pub(crate) fn open(account: Account) -> Result<Self> {
        let root = root_for(account);
        fs::create_dir_all(&root).map_err(|error| Error::at(&root, &error))?;
        account.own(&root)?;
        Ok(Self { root, account })
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A lock file of this name, not yet locked.
    pub(crate) fn lock_file(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| Error::at(&path, &error))?;
        self.account.own(&path)?;
        Ok(file)
    }

    /// Waits for the lock of this name, against every other holder.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        let file = self.lock_file(name)?;
        file.lock().map_err(|error| Error::at(&self.path(name), &error))?;
        Ok(file)
    }

    /// Waits for the lock of this name, beside other users of the same kind.
    pub(crate) fn lock_shared(&self, name: &str) -> Result<File> {
        let file = self.lock_file(name)?;
        file.lock_shared().map_err(|error| Error::at(&self.path(name), &error))?;
        Ok(file)
    }

    /// A new, empty folder for one server's life, closed to other accounts.
    pub(crate) fn new_run(&self) -> Result<PathBuf> {
        let path = self.path(&format!("run-{}", unique()));
        self.make_private(&path)?;
        Ok(path)
    }

    /// Makes a folder that only the account (and root) can enter.
    pub(crate) fn make_private(&self, path: &Path) -> Result<()> {
        let make = || {
            fs::create_dir(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        };
        make().map_err(|error| Error::at(path, &error))?;
        self.account.own(path)
    }

    /// The folder of the shared server of a version, if it still stands.
    pub(crate) fn current_run(&self, version: &str) -> Option<PathBuf> {
        let name = fs::read_to_string(self.path(&format!("current-{version}"))).ok()?;
        Some(self.path(name.trim())).filter(|path| !name.trim().is_empty() && path.is_dir())
    }

    pub(crate) fn set_current_run(&self, version: &str, run: &Path) -> Result<()> {
        let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = self.path(&format!("current-{version}"));
        fs::write(&path, name).map_err(|error| Error::at(&path, &error))
    }
}

/// A short word that no other call, process or run of this machine has.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Process numbers come round again, seldom within the same millisecond.
    let millis = since.as_millis() & 0xff_ffff_ffff;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{millis:x}-{}-{count}", std::process::id())
}

/// `tmp/pgserver-<uid>` in the target directory, or the same in the system's
/// temporary folder where the target directory cannot hold a server: a closed
/// folder above it, or a path too long for a socket.
fn root_for(account: Account) -> PathBuf {
    let name = format!("pgserver-{}", account.uid());
    target_directory()
        .map(|target| target.join("tmp").join(&name))
        .filter(|root| root.as_os_str().len() <= LONGEST_ROOT && is_reachable(root))
        .unwrap_or_else(|| {
            // Two working copies must not share one server's life.
            let here = target_directory().unwrap_or_default();
            env::temp_dir().join(format!("{name}-{:x}", fingerprint(&here)))
        })
}

/// Cargo marks its target directory with a file; test programs run below it.
fn target_directory() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    program.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf)
}

/// Whether every account may pass through the folders above.
fn is_reachable(path: &Path) -> bool {
    path.ancestors()
        .filter_map(|dir| fs::metadata(dir).ok())
        .all(|metadata| metadata.mode() & 0o001 != 0)
}

/// FNV-1a of a path: the same in every process, unlike std's hasher.
fn fingerprint(path: &Path) -> u32 {
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
