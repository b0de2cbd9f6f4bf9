//! The process that ends a server when its users are gone, however they went.
//!
//! It stands before the server starts: whoever is killed in the middle of the
//! start leaves nothing behind that nobody would end.
//!
//! A shell script, because a library has no program of its own to start that
//! would outlive the test process.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::{Error, Result};

const SCRIPT: &str = include_str!("watchdog.sh");

/// What the script says once it stands.
const STANDS: &str = "stands\n";

/// Makes sure that a watchdog stands beside the server of this folder, whether
/// or not the server was started yet.
pub(crate) fn ensure(account: Account, run: &Path, lock: &Path, grace_seconds: u32) -> Result<()> {
    let mark = run.join("watchdog.lock");
    let held = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&mark)
        .map_err(|error| Error::at(&mark, &error))?;
    account.own(&mark)?;
    if held.try_lock().is_err() {
        return Ok(());
    }
    held.unlock().map_err(|error| Error::at(&mark, &error))?;
    // A session of its own: what ends the test's group, or hangs up its
    // terminal, must not end this.
    let mut watchdog = account
        .command("setsid")
        .args(["sh", "-c", SCRIPT, "gristmill-pgserver-watchdog"])
        .arg(run)
        .arg(lock)
        .arg(grace_seconds.to_string())
        .arg(Binaries::find()?.path("pg_ctl"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Error::new(format!("the watchdog cannot be started: {error}")))?;
    let mut said = String::new();
    if let Some(mut stdout) = watchdog.stdout.take() {
        stdout.read_to_string(&mut said).map_err(|error| Error::new(error.to_string()))?;
    }
    // One that a killed test had begun may have come first.
    if said == STANDS || held.try_lock().is_err() {
        return Ok(());
    }
    Err(Error::new("the watchdog does not stand: it needs `flock` of util-linux"))
}

/// Says that the server is in use now.
pub(crate) fn mark_used(run: &Path) {
    // Without the mark the server only ends earlier, so a failure is bearable.
    let _ = fs::write(run.join("used"), std::process::id().to_string());
}
