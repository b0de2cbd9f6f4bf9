//! A private pgbouncer in transaction mode, in front of one server.

use std::env;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, socket_url};
use crate::error::run;
use crate::place::Place;
use crate::{Error, Result};

/// Only the name of a socket: pgbouncer listens on no port.
const PORT: u16 = 6432;

/// How long a start may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The URL of a database through the server's pgbouncer, started if needed.
pub(crate) fn url(place: &Place, cluster: &Cluster, database: &str) -> Result<String> {
    let run = cluster.run_folder();
    let _starting = place.lock("pgbouncer.lock")?;
    if UnixStream::connect(socket(run)).is_err() {
        start(cluster)?;
    }
    Ok(socket_url(run, PORT, database))
}

/// Ends the server's pgbouncer, if there is one.
pub(crate) fn stop(cluster: &Cluster) {
    let pid = fs::read_to_string(cluster.run_folder().join("pgbouncer.pid"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn start(cluster: &Cluster) -> Result<()> {
    let program = find()?;
    let run_folder = cluster.run_folder();
    let config = run_folder.join("pgbouncer.ini");
    fs::write(&config, settings(cluster)).map_err(|error| Error::at(&config, &error))?;
    // A killed one leaves these, and the next would refuse to start.
    let _ = fs::remove_file(run_folder.join("pgbouncer.pid"));
    let _ = fs::remove_file(socket(run_folder));
    run(cluster.account().command(program).args(["-q", "-d"]).arg(&config))?;
    let deadline = Instant::now() + PATIENCE;
    while UnixStream::connect(socket(run_folder)).is_err() {
        if Instant::now() > deadline {
            let log = fs::read_to_string(run_folder.join("pgbouncer.log")).unwrap_or_default();
            let last = log.lines().next_back().unwrap_or("nothing");
            return Err(Error::new(format!("pgbouncer did not start; its log ends with: {last}")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn settings(cluster: &Cluster) -> String {
    let run = cluster.run_folder().display();
    let port = cluster.port();
    // `auth_type = any` takes whoever can enter the folder.
    format!(
        "[databases]
* = host={run} port={port} user=postgres
[pgbouncer]
listen_addr =
listen_port = {PORT}
unix_socket_dir = {run}
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
pidfile = {run}/pgbouncer.pid
logfile = {run}/pgbouncer.log
log_connections = 0
log_disconnections = 0
"
    )
}

fn socket(run: &Path) -> PathBuf {
    run.join(format!(".s.PGSQL.{PORT}"))
}

fn find() -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        // Not every account looks into the system's folder.
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")])
        .map(|dir| dir.join("pgbouncer"))
        .find(|program| program.is_file())
        .ok_or_else(|| Error::new("pgbouncer is not installed: install the package `pgbouncer`"))
}
