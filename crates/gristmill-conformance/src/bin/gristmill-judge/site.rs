//! The clients of a run, as processes: started, killed, stopped, sent away.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill_conformance::judge::Role;
use rustix::process::{Pid, Signal, kill_process};

use crate::Result;

/// What a client is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Part {
    /// One of this program, in a role.
    Rust(Role),
    /// One in Python over SQL, which holds its transactions open for up to this
    /// many seconds.
    Python(f64),
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Part::Rust(role) => role.word(),
            Part::Python(_) => "python",
        }
    }
}

/// The client in Python, written to the run's folder.
const PYTHON: &str = include_str!("client.py");

/// A client that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) part: Part,
    /// Which of its part it is, whoever has that place now.
    pub(crate) place: usize,
    pub(crate) name: String,
    child: Child,
    /// When it goes on, if it was stopped.
    pub(crate) stopped_until: Option<Instant>,
}

/// All clients, and where they are.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) folder: PathBuf,
    url: String,
    /// The socket of the server, for clients that speak its protocol.
    socket: Option<String>,
    seed: u64,
    clock: Option<PathBuf>,
    /// Clients do not rest between calls.
    pub(crate) restless: bool,
    pub(crate) running: Vec<Running>,
    started: usize,
}

impl Site {
    pub(crate) fn new(folder: &Path, url: &str, seed: u64, clock: Option<PathBuf>) -> Self {
        Site {
            folder: folder.to_owned(),
            url: url.to_owned(),
            socket: None,
            seed,
            clock,
            restless: false,
            running: Vec::new(),
            started: 0,
        }
    }

    /// Makes it possible to start clients in Python.
    pub(crate) fn speak_sql(&mut self, socket: String) -> Result<()> {
        let file = self.folder.join("client.py");
        std::fs::write(file, PYTHON).map_err(|error| error.to_string())?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Starts a client in this place, under a tracer if there are words for one.
    pub(crate) fn start(&mut self, part: Part, place: usize, tracer: &[String]) -> Result<()> {
        self.started += 1;
        let name = format!("{}-{place}.{}", part.word(), self.started);
        let mut command = match part {
            Part::Rust(role) => self.rust(role, &name, tracer)?,
            Part::Python(hold) => self.python(hold, &name),
        };
        let said = File::create(self.folder.join(format!("{name}.stderr")));
        // A Ctrl-C is for the run, which ends them in order.
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.map_err(|error| error.to_string())?)
            .spawn()
            .map_err(|error| format!("a client cannot be started: {error}"))?;
        self.running.push(Running { part, place, name, child, stopped_until: None });
        Ok(())
    }

    fn python(&self, hold: f64, name: &str) -> Command {
        let mut command = Command::new("python3");
        command.arg(self.folder.join("client.py")).arg(&self.folder).arg(name);
        command.args([self.seed.to_string(), hold.to_string()]);
        command.env("GRISTMILL_JUDGE_STORE", self.socket.as_deref().unwrap_or_default());
        command
    }

    fn rust(&self, role: Role, name: &str, tracer: &[String]) -> Result<Command> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = match tracer.split_first() {
            Some((tracer, words)) => {
                let mut command = Command::new(tracer);
                command.args(words).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(["client", "--role", role.word(), "--name", name]);
        command.arg("--folder").arg(&self.folder).args(["--seed", &self.seed.to_string()]);
        if self.restless {
            command.arg("--restless");
        }
        if let Some(clock) = &self.clock {
            command.arg("--clock").arg(clock);
        }
        command.env("GRISTMILL_JUDGE_STORE", &self.url);
        Ok(command)
    }

    /// Kills a client. Returns what it was.
    pub(crate) fn kill(&mut self, at: usize) -> (Part, usize, String) {
        let mut gone = self.running.swap_remove(at);
        self.end(&mut gone);
        (gone.part, gone.place, gone.name)
    }

    fn end(&self, client: &mut Running) {
        // The client itself before its tracer, which lets go of it when it dies.
        if let Some(pid) = self.pid(client) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if let Ok(None) = client.child.try_wait()
            && self.pid(client) == Pid::from_raw(client.child.id().cast_signed())
        {
            let _ = client.child.kill();
        }
        // A tracer ends with who it traces.
        let _ = client.child.wait();
    }

    fn pid(&self, client: &Running) -> Option<Pid> {
        let written = std::fs::read_to_string(self.folder.join(format!("{}.pid", client.name)));
        let written = written.ok().and_then(|text| text.trim().parse().ok());
        Pid::from_raw(written.unwrap_or(client.child.id().cast_signed()))
    }

    /// Stops a client where it is, for this long.
    pub(crate) fn stop(&mut self, at: usize, time: Duration) -> Result<String> {
        let pid = self.running.get(at).and_then(|client| self.pid(client));
        let pid = pid.ok_or("no such client")?;
        kill_process(pid, Signal::STOP).map_err(|error| error.to_string())?;
        let client = self.running.get_mut(at).ok_or("no such client")?;
        client.stopped_until = Some(Instant::now() + time);
        Ok(client.name.clone())
    }

    /// Lets those go on whose time is over, or all. Returns who they are.
    pub(crate) fn go_on(&mut self, all: bool) -> Vec<String> {
        let now = Instant::now();
        let due: Vec<usize> = (self.running.iter().enumerate())
            .filter(|(_, one)| one.stopped_until.is_some_and(|until| all || until <= now))
            .map(|(at, _)| at)
            .collect();
        let mut names = Vec::new();
        for at in due {
            let pid = self.running.get(at).and_then(|client| self.pid(client));
            if let (Some(pid), Some(client)) = (pid, self.running.get_mut(at)) {
                let _ = kill_process(pid, Signal::CONT);
                client.stopped_until = None;
                names.push(client.name.clone());
            }
        }
        names
    }

    /// All processes, stopped where they are, as a power cut stops them.
    pub(crate) fn halt(&self) -> Result<()> {
        let pids: Vec<u32> = (self.running.iter())
            .filter_map(|client| self.pid(client))
            .filter_map(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
            .collect();
        gristmill_conformance::crash::stop(&pids)
    }

    /// Kills all, and says what was there.
    pub(crate) fn kill_all(&mut self) -> Vec<(Part, usize)> {
        let mut gone = Vec::new();
        while let Some(mut client) = self.running.pop() {
            self.end(&mut client);
            gone.push((client.part, client.place));
        }
        gone
    }

    /// Asks one to leave in good order.
    pub(crate) fn send_away(&self, at: usize) -> Result<String> {
        let client = self.running.get(at).ok_or("no such client")?;
        let file = self.folder.join(format!("{}.leave", client.name));
        File::create(file).map_err(|error| error.to_string())?;
        Ok(client.name.clone())
    }

    /// Clients that ended: those that left as they were told to, and words about
    /// those that did not.
    pub(crate) fn ended(&mut self) -> Vec<(Part, usize, Option<String>)> {
        let mut ended = Vec::new();
        let mut at = 0;
        while at < self.running.len() {
            let status = self.running.get_mut(at).map(|client| client.child.try_wait());
            let Some(Ok(Some(status))) = status else {
                at += 1;
                continue;
            };
            let client = self.running.swap_remove(at);
            let said = self.folder.join(format!("{}.stderr", client.name));
            let said = std::fs::read_to_string(said).unwrap_or_default();
            let last: Vec<&str> = said.lines().rev().take(4).collect();
            let died = (!status.success())
                .then(|| format!("{} ended with {status}: {}", client.name, last.join(" | ")));
            ended.push((client.part, client.place, died));
        }
        ended
    }

    /// Asks all to leave, and kills who has not left in time.
    pub(crate) fn send_all_away(&mut self, patience: Duration) -> Vec<String> {
        self.go_on(true);
        let _ = File::create(self.folder.join("leave"));
        let end = Instant::now() + patience;
        let mut faults = Vec::new();
        while !self.running.is_empty() && Instant::now() < end {
            faults.extend(self.ended().into_iter().filter_map(|(_, _, died)| died));
            std::thread::sleep(Duration::from_millis(20));
        }
        for client in &self.running {
            faults.push(format!("{} did not leave within {patience:?}", client.name));
        }
        self.kill_all();
        let _ = std::fs::remove_file(self.folder.join("leave"));
        faults
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill_all();
    }
}
