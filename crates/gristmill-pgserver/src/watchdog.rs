//! The process that ends a server when its users are gone, however they went.
//!
//! A shell script, because a library has no program of its own to start that
//! would outlive the test process.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use crate::cluster::Cluster;
use crate::{Error, Result};

const SCRIPT: &str = include_str!("watchdog.sh");

/// Makes sure that a watchdog stands beside the server.
pub(crate) fn ensure(cluster: &Cluster, lock: &Path, grace_seconds: u32) -> Result<()> {
    let run = cluster.run_folder();
    let mark = run.join("watchdog.lock");
    let held = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&mark)
        .map_err(|error| Error::at(&mark, &error))?;
    cluster.account().own(&mark)?;
    if held.try_lock().is_err() {
        return Ok(());
    }
    drop(held);
    cluster
        .account()
        .command("sh")
        .arg("-c")
        .arg(SCRIPT)
        .arg("gristmill-pgserver-watchdog")
        .arg(run)
        .arg(lock)
        .arg(grace_seconds.to_string())
        .arg(cluster.program("pg_ctl"))
        // A group of its own: what ends the test's group must not end this.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(|error| Error::new(format!("the watchdog cannot be started: {error}")))
}

/// Says that the server is in use now.
pub(crate) fn mark_used(run: &Path) {
    // Without the mark the server only ends earlier, so a failure is bearable.
    let _ = fs::write(run.join("used"), std::process::id().to_string());
}
