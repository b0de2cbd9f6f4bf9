//! Three servers under Patroni and the etcd that it needs, in a folder of their
//! own: quorum commit, so that what is acknowledged stands on two of them.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use gristmill_pgserver::Server;
use serde_json::Value;

use super::proxy::{Cut, lead_to};
use crate::power_cut::account;

const PASSWORD: &str = "throw-away";
/// Longest that the cluster may take for anything.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    /// Where Patroni and etcd are installed.
    programs: PathBuf,
    account: (u32, u32),
    etcd: Child,
    pub(crate) nodes: Vec<Node>,
}

/// One server and what watches over it.
pub(crate) struct Node {
    pub(crate) name: String,
    patroni: Option<Child>,
    data: PathBuf,
    /// Patroni's own port, and the ways that others use.
    rest: u16,
    postgres_way: u16,
    cut: Cut,
}

impl Cluster {
    pub(crate) fn start(programs: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let account = account();
        chown(folder.path(), Some(account.0), Some(account.1)).expect("root");
        let bin = Server::shared().expect("PostgreSQL is installed").program("postgres");
        let bin = bin.parent().expect("a folder").to_owned();
        let (client, peer) = (free_port(), free_port());
        let mut etcd = Command::new(programs.join("etcd"));
        etcd.arg("--data-dir").arg(folder.path().join("etcd"));
        for (name, port) in [("client", client), ("peer", peer)] {
            let url = format!("http://127.0.0.1:{port}");
            etcd.arg(format!("--listen-{name}-urls={url}"));
            let advertise =
                if name == "client" { "advertise-client" } else { "initial-advertise-peer" };
            etcd.arg(format!("--{advertise}-urls={url}"));
        }
        etcd.arg(format!("--initial-cluster=default=http://127.0.0.1:{peer}"));
        let etcd = run(etcd, account, &folder.path().join("etcd.log"));
        let mut nodes = Vec::new();
        for number in 1..=3 {
            let name = format!("n{number}");
            let (cut, rest, postgres) = (Cut::default(), free_port(), free_port());
            let node = Node {
                data: folder.path().join(&name),
                name,
                patroni: None,
                rest,
                postgres_way: lead_to(postgres, &cut),
                cut: cut.clone(),
            };
            let text = settings(
                &node,
                &bin,
                folder.path(),
                lead_to(client, &cut),
                lead_to(rest, &cut),
                postgres,
            );
            let file = folder.path().join(format!("{}.yml", node.name));
            std::fs::write(file, text).expect("a file");
            nodes.push(node);
        }
        let mut cluster = Cluster { folder, programs: programs.to_owned(), account, etcd, nodes };
        // A Patroni that asks before etcd knows its own version ends at once.
        let start = Instant::now();
        while !is_decided(client) {
            assert!(start.elapsed() < PATIENCE, "etcd: {}", cluster.last_words());
            thread::sleep(Duration::from_millis(50));
        }
        for number in 0..3 {
            cluster.begin(number);
        }
        cluster.wait_until_whole();
        cluster
    }

    /// The URL of all three, for whoever may write.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.postgres_way)).collect();
        format!(
            "postgres://postgres:{PASSWORD}@{}/postgres?target_session_attrs=read-write&connect_timeout=2&sslmode=disable",
            hosts.join(",")
        )
    }

    pub(crate) fn begin(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let mut patroni = Command::new(self.programs.join("patroni"));
        patroni.arg(self.folder.path().join(format!("{}.yml", node.name)));
        let log = self.folder.path().join(format!("{}.log", node.name));
        node.patroni = Some(run(patroni, self.account, &log));
    }

    /// Who leads, in the eyes of any node but this one.
    pub(crate) fn leader(&self, but: Option<usize>) -> Option<usize> {
        let asked = (0..3).filter(|number| Some(*number) != but);
        let members = asked.filter_map(|number| self.members(number)).next()?;
        let leads = |member: &&Value| member["role"] == "leader" && member["state"] == "running";
        let name = members.iter().find(leads)?["name"].as_str()?.to_owned();
        self.nodes.iter().position(|node| node.name == name)
    }

    fn members(&self, number: usize) -> Option<Vec<Value>> {
        let answer = ask(self.nodes[number].rest, "GET /cluster HTTP/1.0\r\n\r\n")?;
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        answer["members"].as_array().cloned()
    }

    /// One leads, and two others may take its place.
    fn is_whole(&self) -> bool {
        let Some(members) = (0..3).find_map(|number| self.members(number)) else { return false };
        let standing = members.iter().filter(|member| {
            let role = member["role"].as_str().unwrap_or_default();
            member["state"] == "streaming" && (role == "quorum_standby" || role == "sync_standby")
        });
        standing.count() == 2 && self.leader(None).is_some()
    }

    pub(crate) fn wait_until_whole(&self) {
        let start = Instant::now();
        while !self.is_whole() {
            if start.elapsed() > PATIENCE {
                panic!("the cluster is not whole: {:?}\n{}", self.members(0), self.last_words());
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn last_words(&self) -> String {
        let mut words = String::new();
        for name in ["etcd", "n1", "n2", "n3"] {
            let log = std::fs::read_to_string(self.folder.path().join(format!("{name}.log")));
            let log = log.unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(8).collect();
            words +=
                &format!("-- {name}\n{}\n", lines.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        words
    }

    /// Asks the leader to hand over.
    pub(crate) fn switch_over(&self, leader: usize) -> bool {
        let body = format!("{{\"leader\":\"{}\"}}", self.nodes[leader].name);
        let request = format!(
            "POST /switchover HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        ask(self.nodes[leader].rest, &request).is_some_and(|answer| answer.contains(" 200 "))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.cut.store(false, Ordering::Relaxed);
            node.signal("CONT");
            node.kill();
        }
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

impl Node {
    /// Patroni, the server and every process of it.
    fn processes(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.patroni.iter().map(Child::id).collect();
        let note = std::fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        if let Some(server) = note.lines().next().and_then(|pid| pid.trim().parse::<u32>().ok()) {
            let children =
                std::fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
            all.push(server);
            all.extend(
                children.unwrap_or_default().split(' ').filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        all
    }

    pub(crate) fn signal(&self, signal: &str) {
        for pid in self.processes() {
            // It may have ended meanwhile.
            let _ = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).output();
        }
    }

    /// Ends everything of it at once.
    pub(crate) fn kill(&mut self) {
        self.signal("KILL");
        if let Some(mut patroni) = self.patroni.take() {
            let _ = patroni.kill();
            let _ = patroni.wait();
        }
    }

    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

fn run(mut command: Command, account: (u32, u32), log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).expect("a log");
    command.gid(account.1).uid(account.0).current_dir("/");
    command.stdin(std::process::Stdio::null());
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    command.spawn().expect("the program runs")
}

fn ask(port: u16, request: &str) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let limit = Duration::from_secs(10);
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Whether etcd, at this port, serves and knows its version.
fn is_decided(port: u16) -> bool {
    let answer = ask(port, "GET /version HTTP/1.0\r\n\r\n").unwrap_or_default();
    answer.contains("etcdcluster") && !answer.contains("not_decided")
}

fn settings(
    node: &Node,
    bin: &Path,
    folder: &Path,
    etcd: u16,
    rest_way: u16,
    postgres: u16,
) -> String {
    let Node { name, rest, postgres_way, data, .. } = node;
    format!(
        "scope: gristmill
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest_way}'}}
# Nothing else is asked for members: their own addresses would lead around the cut.
etcd3: {{hosts: ['127.0.0.1:{etcd}'], use_proxies: true}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 3
    retry_timeout: 5
    maximum_lag_on_failover: 1048576
    synchronous_mode: quorum
    synchronous_mode_strict: true
    synchronous_node_count: 1
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters: {{max_connections: 100, shared_buffers: 64MB, wal_log_hints: 'on'}}
  initdb: [{{encoding: UTF8}}, data-checksums]
postgresql:
  listen: '127.0.0.1:{postgres}'
  connect_address: '127.0.0.1:{postgres_way}'
  data_dir: {data}
  bin_dir: {bin}
  pgpass: {folder}/{name}.pgpass
  parameters: {{unix_socket_directories: {folder}}}
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication all 127.0.0.1/32 scram-sha-256
  authentication:
    superuser: {{username: postgres, password: {PASSWORD}}}
    replication: {{username: replicator, password: {PASSWORD}}}
watchdog: {{mode: 'off'}}
",
        data = data.display(),
        bin = bin.display(),
        folder = folder.display(),
    )
}
