//! A server on a disk whose power is cut while it answers.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use gristmill_conformance::crash::{self, PowerPlan};
use gristmill_pgserver::Server;

use crate::crash::{URL, open};

/// A server whose data lie on the disk that is cut. Its socket does not: a file
/// system that is gone would take it along.
struct OnDisk {
    programs: Server,
    account: (u32, u32),
    socket: tempfile::TempDir,
    data: PathBuf,
    running: Vec<u32>,
}

impl OnDisk {
    fn new() -> Self {
        let socket = tempfile::tempdir().expect("a folder");
        let account = account();
        std::os::unix::fs::chown(socket.path(), Some(account.0), Some(account.1)).expect("root");
        let programs = Server::shared().expect("PostgreSQL is installed");
        OnDisk { programs, account, socket, data: PathBuf::new(), running: Vec::new() }
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.programs.program(program));
        // The server refuses to run as root.
        command.gid(self.account.1).uid(self.account.0).current_dir("/");
        command.args(arguments).output().expect("the program runs")
    }

    fn pid(&self) -> Option<u32> {
        let note = std::fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        note.lines().next()?.trim().parse().ok()
    }
}

/// The account of the system's package, which also owns the disk's folder.
pub(crate) fn account() -> (u32, u32) {
    let accounts = std::fs::read_to_string("/etc/passwd").expect("accounts");
    let line = accounts.lines().find(|line| line.starts_with("postgres:"));
    let fields: Vec<&str> = line.expect("an account `postgres`").split(':').collect();
    (fields[2].parse().expect("a number"), fields[3].parse().expect("a number"))
}

impl crash::Server for OnDisk {
    fn start(&mut self, folder: &Path) {
        self.data = folder.join("data");
        let data = self.data.display().to_string();
        if !self.data.exists() {
            std::fs::create_dir(&self.data).expect("a folder");
            std::os::unix::fs::chown(&self.data, Some(self.account.0), Some(self.account.1))
                .expect("root");
            let made = self.run("initdb", &["-D", &data, "-U", "postgres", "-A", "trust"]);
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let socket = self.socket.path().display().to_string();
            let settings = format!(
                "\nlisten_addresses = ''\nunix_socket_directories = '{socket}'\n\
                 max_wal_size = '64MB'\nmin_wal_size = '32MB'\n"
            );
            let path = self.data.join("postgresql.conf");
            let written = std::fs::read_to_string(&path).expect("settings") + &settings;
            std::fs::write(&path, written).expect("settings");
        }
        // Written anew each time: the cut may have taken it.
        let host = self.socket.path().display().to_string().replace('/', "%2F");
        let url = format!("postgres://postgres@{host}/postgres");
        std::fs::write(folder.join(URL), url).expect("a file");
        // What the cut left is not a server's any more, though its number may
        // still be listed until somebody waits for it.
        let _ = std::fs::remove_file(self.data.join("postmaster.pid"));
        for file in [".s.PGSQL.5432", ".s.PGSQL.5432.lock"] {
            let _ = std::fs::remove_file(self.socket.path().join(file));
        }
        let log = self.data.join("log.txt").display().to_string();
        let started = self.run("pg_ctl", &["start", "-w", "-t", "60", "-D", &data, "-l", &log]);
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        assert!(started.status.success(), "the server comes back: {said}");
    }

    fn processes(&mut self) -> Vec<u32> {
        let Some(first) = self.pid() else { return Vec::new() };
        let children = format!("/proc/{first}/task/{first}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        // The first one last: it would notice that its children stand still.
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        self.running = children.chain([first]).collect();
        self.running.clone()
    }

    fn end(&mut self) {
        if self.running.is_empty() {
            self.processes();
        }
        let start = Instant::now();
        for pid in std::mem::take(&mut self.running) {
            let process = PathBuf::from(format!("/proc/{pid}"));
            while is_running(&process) {
                assert!(start.elapsed() < Duration::from_secs(30), "the server does not end");
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).output();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Whether a process still holds files. One that ended and was not waited for
/// does not.
fn is_running(process: &Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
#[ignore = "needs root and loop devices: long form"]
fn power_cut_under_a_server_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    // The server's account must be able to reach its disk.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).expect("ours");
    let plan = PowerPlan { child: "crash::child", cuts: 15, file_system: "xfs" };
    let verdict = crash::power_cuts_under(&plan, folder.path(), open, &mut OnDisk::new())
        .expect("root and loop devices");
    println!("{:?}", verdict.tally);
    assert!(verdict.faults.is_empty(), "{:#?}", verdict.faults);
    assert!(verdict.tally.puts > 300, "{:?}", verdict.tally);
    assert!(verdict.tally.settled > 60, "{:?}", verdict.tally);
}
