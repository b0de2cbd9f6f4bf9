//! One data directory and the server process on it: start, stop, kill, ask.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::run as run_to_end;
use crate::place::Place;
use crate::seed::Seed;
use crate::{Error, Result};

/// What differs from PostgreSQL's own defaults. Durability is not touched:
/// `fsync`, `full_page_writes` and `synchronous_commit` stay on.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    // Many small test processes with a pool each.
    ("max_connections", "400"),
    ("shared_buffers", "128MB"),
    // Nobody replicates a throw-away server.
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("log_lock_waits", "on"),
    ("log_min_messages", "warning"),
    ("log_line_prefix", "%m [%p] %d %a "),
    ("timezone", "UTC"),
];

/// A port that was free a moment ago may be taken by the time of the start.
const PORTS_TRIED: u32 = 5;

/// How long the kernel may need to free what a killed server left behind.
const AFTERMATH: Duration = Duration::from_secs(20);

/// A server's data directory, socket and port.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    run: PathBuf,
    port: u16,
    password: String,
    account: Account,
    binaries: Binaries,
}

impl Cluster {
    /// Makes a data directory in the empty folder `run`, with settings and
    /// files on top, and starts a server.
    pub(crate) fn create(
        place: &Place,
        run: &Path,
        extra: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> Result<Self> {
        let binaries = Binaries::find()?;
        let seed = Seed::ready(place, &binaries)?;
        let data = run.join("data");
        seed.copy(place, &data)?;
        let config = data.join("postgresql.conf");
        append(&config, &settings(run, extra)).map_err(|error| Error::at(&config, &error))?;

        let password = seed.password().to_owned();
        let account = place.account();
        for (name, text) in files {
            let path = data.join(name);
            write_private(&path, text).map_err(|error| Error::at(&path, &error))?;
            account.own(&path)?;
        }
        Self::first_start(run, &password, account, &binaries)
    }

    /// Makes a standby of this server in the empty folder `run`, known to it by
    /// this name, and starts it.
    pub(crate) fn follow(&self, run: &Path, name: &str) -> Result<Self> {
        let data = run.join("data");
        let from = format!(
            "host={} port={} user=postgres application_name={name}",
            self.run.display(),
            self.port
        );
        let mut copy = self.account.command(self.program("pg_basebackup"));
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--no-manifest"]);
        run_to_end(copy.arg("-D").arg(&data).arg("-d").arg(from))?;
        let config = data.join("postgresql.conf");
        let socket = format!("unix_socket_directories = '{}'\n", run.display());
        append(&config, &socket).map_err(|error| Error::at(&config, &error))?;
        Self::first_start(run, &self.password, self.account, &self.binaries)
    }

    /// Starts the server on a new data directory, on a port that is free.
    fn first_start(
        run: &Path,
        password: &str,
        account: Account,
        binaries: &Binaries,
    ) -> Result<Self> {
        let config = run.join("data").join("postgresql.conf");
        let mut tried = 0;
        loop {
            tried += 1;
            let port = free_port()?;
            append(&config, &format!("port = {port}\n")).map_err(|e| Error::at(&config, &e))?;
            let cluster = Self {
                run: run.to_owned(),
                port,
                password: password.to_owned(),
                account,
                binaries: binaries.clone(),
            };
            match cluster.start() {
                Ok(()) => {
                    let note = run.join("port");
                    fs::write(&note, port.to_string()).map_err(|e| Error::at(&note, &e))?;
                    return Ok(cluster);
                }
                Err(error) if tried == PORTS_TRIED => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// The cluster that another process created in `run`, if its server
    /// answers.
    pub(crate) fn find(place: &Place, run: &Path, binaries: &Binaries) -> Result<Option<Self>> {
        let Some(port) = fs::read_to_string(run.join("port")).ok().and_then(|s| s.parse().ok())
        else {
            return Ok(None);
        };
        let password = Seed::ready(place, binaries)?.password().to_owned();
        let binaries = binaries.clone();
        let cluster =
            Self { run: run.to_owned(), port, password, account: place.account(), binaries };
        Ok(UnixStream::connect(cluster.socket()).is_ok().then_some(cluster))
    }

    pub(crate) fn run_folder(&self) -> &Path {
        &self.run
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.binaries.path(name)
    }

    fn socket(&self) -> PathBuf {
        self.run.join(format!(".s.PGSQL.{}", self.port))
    }

    fn data(&self) -> PathBuf {
        self.run.join("data")
    }

    /// Starts the server and waits until it takes connections.
    pub(crate) fn start(&self) -> Result<()> {
        let log = self.run.join("log");
        let deadline = Instant::now() + AFTERMATH;
        loop {
            let before = fs::metadata(&log).map_or(0, |log| log.len());
            let mut start = self.account.command(self.program("pg_ctl"));
            start.args(["start", "-w", "-s", "-t", "120", "-D"]).arg(self.data());
            start.arg("-l").arg(&log);
            let Err(error) = run_to_end(&mut start) else {
                return Ok(());
            };
            let said = fs::read_to_string(&log).unwrap_or_default();
            let said = usize::try_from(before).ok().and_then(|at| said.get(at..)).unwrap_or(&said);
            // The processes of a killed server leave within moments, each with a
            // line, and the next one refuses to start beside them.
            let leaving = said.contains("still in use") || said.contains("already exists");
            if leaving && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
            let last = said.lines().rev().take(6).collect::<Vec<_>>();
            let tail = last.into_iter().rev().collect::<Vec<_>>().join(" | ");
            return Err(Error::new(format!("PostgreSQL did not start: {error}; its log: {tail}")));
        }
    }

    /// Stops the server: `smart`, `fast` or `immediate`, as `pg_ctl` has it.
    pub(crate) fn stop(&self, mode: &str) -> Result<()> {
        let mut stop = self.account.command(self.program("pg_ctl"));
        stop.args(["stop", "-w", "-s", "-m", mode, "-D"]).arg(self.data());
        run_to_end(&mut stop).map(drop)
    }

    /// Has the server read its settings again.
    pub(crate) fn reload(&self) -> Result<()> {
        let mut reload = self.account.command(self.program("pg_ctl"));
        run_to_end(reload.args(["reload", "-s", "-D"]).arg(self.data())).map(drop)
    }

    /// Makes a standby a server that takes writes.
    pub(crate) fn promote(&self) -> Result<()> {
        let mut promote = self.account.command(self.program("pg_ctl"));
        promote.args(["promote", "-w", "-s", "-t", "60", "-D"]).arg(self.data());
        run_to_end(&mut promote).map(drop)
    }

    /// Kills the server's first process; the others end when they notice.
    pub(crate) fn kill(&self) -> Result<()> {
        signal(self.first_process()?, Signal::KILL)
    }

    /// Stops all processes where they are. The kernel still takes connections
    /// for them, and what is sent.
    pub(crate) fn freeze(&self) -> Result<()> {
        let first = self.first_process()?;
        // The first one before the others: it must not make more meanwhile.
        signal(first, Signal::STOP)?;
        for child in children(first) {
            // One that has ended meanwhile says nothing either.
            let _ = signal(child, Signal::STOP);
        }
        Ok(())
    }

    /// Lets them go on.
    pub(crate) fn thaw(&self) -> Result<()> {
        let first = self.first_process()?;
        for child in children(first) {
            let _ = signal(child, Signal::CONT);
        }
        signal(first, Signal::CONT)
    }

    fn first_process(&self) -> Result<Pid> {
        let note = self.data().join("postmaster.pid");
        let text = fs::read_to_string(&note).map_err(|error| Error::at(&note, &error))?;
        text.lines()
            .next()
            .and_then(|line| line.trim().parse().ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| Error::new(format!("{} names no process", note.display())))
    }

    /// Over the socket: no password, the folder is closed to others.
    pub(crate) fn url(&self, database: &str) -> String {
        socket_url(&self.run, self.port, database)
    }

    /// Over 127.0.0.1, with the password.
    pub(crate) fn tcp_url(&self, database: &str) -> String {
        self.tcp_url_over(&[self.port], database)
    }

    /// The same, over these ports in this order.
    pub(crate) fn tcp_url_over(&self, ports: &[u16], database: &str) -> String {
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("postgres://postgres:{}@{}/{database}", self.password, hosts.join(","))
    }

    /// What `psql` answers to the statements, unaligned and without headings.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> Result<String> {
        let mut psql = Command::new(self.program("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d"]);
        psql.arg(self.url(database)).arg("-c").arg(sql);
        let output = run_to_end(&mut psql)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }
}

/// A URL over a socket in the folder `dir`; its path stands where a host would.
pub(crate) fn socket_url(dir: &Path, port: u16, database: &str) -> String {
    let mut host = String::new();
    for byte in dir.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            host.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(host, "%{byte:02X}");
        }
    }
    format!("postgres://postgres@{host}:{port}/{database}")
}

fn signal(process: Pid, signal: Signal) -> Result<()> {
    kill_process(process, signal)
        .map_err(|error| Error::new(format!("a process of PostgreSQL cannot be told: {error}")))
}

/// The processes that this one started and that still run.
fn children(of: Pid) -> Vec<Pid> {
    let of = of.as_raw_nonzero();
    let listed = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn settings(run: &Path, extra: &[(&str, &str)]) -> String {
    let mut text = String::from("\n");
    let socket = run.display().to_string();
    let all = SETTINGS.iter().copied().chain([("unix_socket_directories", socket.as_str())]);
    for (name, value) in all.chain(extra.iter().copied()) {
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    }
    text
}

/// PostgreSQL refuses a key that others can read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().append(true).open(path)?.write_all(text.as_bytes())
}

fn free_port() -> Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Error::new(format!("no free port on 127.0.0.1: {error}")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn a_socket_folder_is_escaped_in_the_url() {
        let url = super::socket_url(Path::new("/tmp/a b"), 5432, "shop");
        assert_eq!(url, "postgres://postgres@%2Ftmp%2Fa%20b:5432/shop");
    }
}
