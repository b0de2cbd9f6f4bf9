//! A folder of its own for each test, and the binary run in it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longest any test waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    dir: TempDir,
    /// Where commands run, below it.
    below: PathBuf,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { dir: tempfile::tempdir().unwrap(), below: PathBuf::new() }
    }

    /// A place with these queues declared.
    pub(crate) fn with(queues: &[&[&str]]) -> Self {
        let place = Self::new();
        for queue in queues {
            let words: Vec<&str> = ["queue", "add"].iter().chain(queue.iter()).copied().collect();
            place.ok(&words);
        }
        place
    }

    /// The same place, with commands run in one of its folders.
    pub(crate) fn within(mut self, folder: &str) -> Self {
        self.below = self.below.join(folder);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(&self.below).join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command
            .args(args)
            .current_dir(self.dir.path().join(&self.below))
            .env_remove("GRISTMILL_STORE")
            .env_remove("GRISTMILL_LOG")
            // Several run on one machine at once: those about HTTP say any free port.
            .env("GRISTMILL_LISTEN", "off")
            .env("USER", "tester")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Answer {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        let feeding = std::thread::spawn(move || {
            // A command that fails early does not read all of it.
            let _ = pipe.write_all(&bytes);
        });
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        self.run_with(args, b"")
    }

    /// Runs what must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let answer = self.run(args);
        // A drain in which tasks failed says so; whether they should have is the test's.
        let failed_in_it = answer.code == 3 && args.contains(&"--drain");
        assert!(answer.code == 0 || failed_in_it, "{args:?}: {answer:?}");
        answer.stdout
    }

    /// Runs what must succeed, with `--json`.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let words: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&words)).unwrap()
    }

    /// One queue's numbers.
    pub(crate) fn stats(&self, queue: &str) -> Value {
        self.json(&["stats", queue])[0].clone()
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(&mut self.command(args))
    }

    /// Brings the configuration up, stops it once it stands, and returns what
    /// was said to stderr.
    pub(crate) fn up_and_stop(&self) -> String {
        let mut up = self.start(&["up"]);
        Running::until(&mut up.stdout, "Stop with Ctrl-C");
        up.signal(Signal::TERM);
        let (code, _, stderr) = up.end();
        assert_eq!(code, 0, "{stderr}");
        stderr
    }
}

/// A command that stays. Killed when a test ends early.
pub(crate) struct Running {
    child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) stderr: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.spawn().unwrap())
    }

    /// One that was started already.
    pub(crate) fn from(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads lines until one contains the text; returns all of them.
    pub(crate) fn until(reader: &mut impl BufRead, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            let read = reader.read_line(&mut line).unwrap();
            assert!(read > 0, "'{text}' never came: {seen:?}");
            seen.push(line.trim_end().to_owned());
            if line.contains(text) {
                return seen;
            }
        }
    }

    /// Waits for the end, and returns the exit code with the rest of what was
    /// said.
    pub(crate) fn end(mut self) -> (i32, String, String) {
        use std::io::Read;
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.stderr.read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), out, err)
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that cannot be heard, only looked at.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} never came true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs; one that ended and was not reaped does not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
