//! The handler that is a program: `sh -c CMD`, the payload on its standard
//! input, its exit code the outcome.
//!
//! ```text
//!   0   done                            75  release, again after the backoff
//!   65  failed for good                 126, 127  it cannot be run: its queue is
//!   anything else, or a signal: error             served no more, the task given back
//! ```
//!
//! Or a program that stays and is given one task after the other ([`stays`]), or a URL
//! ([`crate::hook`]).

mod broken;
mod group;
mod handler;
mod how;
mod input;
mod kept;
mod output;
mod progress_file;
mod runs;
mod starter;
mod stays;
mod tail;
mod task_json;

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gristmill::port::policy::backoff;
use gristmill::port::{Backoff, ClaimedTask, Ending, Outcome, Settings, When};
use gristmill::worker::{Context, Handler};
use gristmill::{Encoding, Mill};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::hook::Verdict;
use crate::stderr;
pub(crate) use broken::{Broken, BrokenHandler};
use group::Group;
pub(crate) use group::Leaving;
pub(crate) use handler::become_one;
pub(crate) use how::{How, Means, Told};
use kept::{KeptFile, KeptFiles};
use output::Output;
use progress_file::ProgressFile;
pub(crate) use runs::Runs;
pub(crate) use stays::{Closing, Stays};
use tail::Tail;

/// What the sysexits of BSD call a temporary failure.
const RELEASE: i32 = 75;
/// What they call wrong input data: no retry will mend it.
const FAIL: i32 = 65;
/// What shells say of a command that is not there or cannot be executed.
const CANNOT_RUN: [i32; 2] = [126, 127];
/// What of our own environment a handler must not see: the store's URL may hold a
/// password. Nor the token of a claim around us.
const OURS: [&str; 4] = ["GRISTMILL_STORE", "GRISTMILL_LOG", "GRISTMILL_TOKEN", "GRISTMILL_LEASE"];

/// What else is about one task alone.
const OF_A_TASK: [&str; 4] =
    ["GRISTMILL_CHECKPOINT", "GRISTMILL_PROGRESS", "TRACEPARENT", "TRACESTATE"];

/// How long the end of standard error is waited for after the program ended:
/// what it left behind may hold it open for ever.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How often it is looked whether a program replaced its checkpoint, and how far it is.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of all programs that handlers started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    /// Those that are being ended.
    pub(crate) leaving: Leaving,
    /// How long each runs.
    pub(crate) runs: Runs,
    /// What each keeps.
    kept: KeptFiles,
    /// Ends those that stay.
    pub(crate) closing: Closing,
}

/// Handles tasks by what its configuration says: a command, one that stays, or a URL.
#[derive(Debug)]
pub(crate) struct Exec {
    pub(crate) told: Told,
    pub(crate) mill: Mill,
    /// Our standard output is for JSON: the program's goes to standard error.
    pub(crate) output_to_stderr: bool,
    pub(crate) children: Children,
    /// Hears of a command that cannot be run.
    pub(crate) broken: Broken,
    /// The programs that stay, where they do.
    pub(crate) stays: Stays,
}

#[async_trait]
impl Handler for Exec {
    async fn handle(&self, task: &ClaimedTask, context: &Context) -> Outcome {
        let _running = self.children.runs.begin(task.id);
        // A handler that always got JSON would take bytes for something else. An
        // error and not a failure for good: a newer contract may read it.
        let how = self.told.now();
        let view = match how.contracts.as_json(&context.queue, &task.payload) {
            Ok(view) => view,
            Err(error) => return Outcome::Error(error),
        };
        let encoding = if view.is_some() { Encoding::Json } else { task.payload.encoding };
        let payload = view.map_or_else(|| task.payload.bytes.clone(), Bytes::from);
        let command = match &how.means {
            Means::Program(command) => command,
            Means::Stays(command) => {
                return self.stay(command, task, context, &how, encoding, &payload).await;
            }
            Means::Hook(hook) => {
                return match task_json::line(task, context, encoding, &payload) {
                    Ok(line) => {
                        self.judged(hook.handle(task, context, line).await, task, context).await
                    }
                    Err(error) => Outcome::Error(error),
                };
            }
        };
        let mut kept = match self.children.kept.of(task) {
            Ok(kept) => kept,
            Err(error) => return Outcome::Error(format!("no place for a checkpoint: {error}")),
        };
        let mut far = match self.children.kept.progress_of(task) {
            Ok(far) => far,
            Err(error) => return Outcome::Error(format!("no place for progress: {error}")),
        };
        let is_result = self.is_result(context).await;
        let output =
            if is_result || self.output_to_stderr { Stdio::piped() } else { Stdio::inherit() };
        let command =
            self.command(program(command, &how), task, context, encoding, &payload, (&kept, &far));
        let started = match command.map(|mut command| {
            command.stdout(output);
            command
        }) {
            Ok(command) => starter::start(command).await,
            Err(error) => Err(error),
        };
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return Outcome::Error(format!("sh could not be started: {error}")),
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut group = Group::of(child, &self.children.leaving);
        let tail = Arc::new(Mutex::new(Tail::default()));
        // Beside the program: it may say much before it ends.
        let mut listening = AbortOnDrop(tokio::spawn(listen(stderr, tail.clone())));
        // Through us also where it is not the result: a standard error that is not read
        // would stop the program.
        let most = self.mill.store().limits().result_bytes;
        let result = Arc::new(Mutex::new(Output::of(if is_result { most } else { 0 })));
        let mut showing = AbortOnDrop(match is_result {
            true => tokio::spawn(gather(stdout, result.clone())),
            false => tokio::spawn(listen(stdout, Arc::default())),
        });
        let ended = loop {
            tokio::select! {
                ended = group.wait() => break ended,
                () = context.cancelled() => {
                    group.stop().await;
                    kept.keep(context).await;
                    return Outcome::Error("the handler was stopped".to_owned());
                }
                () = tokio::time::sleep(LOOK) => {
                    far.tell(context);
                    kept.keep(context).await;
                }
            }
        };
        if !ended.as_ref().is_ok_and(ExitStatus::success) {
            kept.keep(context).await;
        }
        let last_words = async { (&mut listening.0).await.and((&mut showing.0).await) };
        let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
        let said = tail.lock().unwrap_or_else(PoisonError::into_inner).text();
        if is_result {
            let mut said = result.lock().unwrap_or_else(PoisonError::into_inner);
            let (result, is_cut) = std::mem::replace(&mut *said, Output::of(0)).into_result();
            drop(said);
            if is_cut {
                let said = format!("task {}: its result is cut to {most} bytes\n", task.id);
                stderr::show(said.into_bytes());
            }
            if let Some(Err(error)) = result.map(|result| context.result_payload(result)) {
                return Outcome::Fail(error.to_string());
            }
        }
        match ended {
            Ok(status) => self.outcome(status, said, is_result, task, context).await,
            Err(error) => Outcome::Error(format!("the program's end is unknown: {error}")),
        }
    }
}

impl Exec {
    fn command(
        &self,
        mut command: Command,
        task: &ClaimedTask,
        context: &Context,
        encoding: Encoding,
        payload: &[u8],
        (kept, far): (&KeptFile, &ProgressFile),
    ) -> std::io::Result<Command> {
        command.stdin(input::of(payload)?);
        command.env("GRISTMILL_CHECKPOINT", kept.path());
        command.env("GRISTMILL_PROGRESS", far.path());
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let about = [
            ("ID", Some(task.id.to_string())),
            ("QUEUE", Some(context.queue.to_string())),
            ("KEY", task.key.clone()),
            ("ATTEMPT", Some(task.attempt.to_string())),
            ("CONCURRENT", number(task.concurrent)),
            ("SLOT", number(task.slot)),
            ("GROUP", task.group.clone()),
            ("SOURCE", task.source.clone()),
            ("ENCODING", Some(encoding.to_string())),
        ];
        let about = about.map(|(name, value)| (format!("GRISTMILL_TASK_{name}"), value));
        let trace = ["traceparent", "tracestate"]
            .map(|name| (name.to_uppercase(), task.headers.get(name).cloned()));
        for (name, value) in about.into_iter().chain(trace) {
            match value {
                Some(value) => command.env(name, value),
                // We may run inside another handler and have inherited its.
                None => command.env_remove(name),
            };
        }
        Ok(command)
    }

    /// A program that stays hears of its tasks by their lines alone. We may run inside
    /// another handler and have inherited what that one was told.
    fn staying(&self, command: &str, how: &How) -> Command {
        let mut command = program(command, how);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let inherited = std::env::vars_os().map(|(name, _)| name).filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("GRISTMILL_TASK_") || OF_A_TASK.contains(&&*name)
        });
        for name in inherited {
            command.env_remove(name);
        }
        command
    }

    async fn outcome(
        &self,
        status: ExitStatus,
        said: String,
        is_wanted: bool,
        task: &ClaimedTask,
        context: &Context,
    ) -> Outcome {
        let error = |said: String| match (status.code(), status.signal()) {
            (_, Some(signal)) if said.is_empty() => format!("killed by signal {signal}"),
            (_, Some(signal)) => format!("killed by signal {signal}: {said}"),
            (Some(code), None) if said.is_empty() => format!("exit status {code}"),
            // Whoever waits ends with it.
            (Some(code), None) if is_wanted => format!("{said}\nexit status {code}"),
            _ => said,
        };
        match status.code() {
            Some(0) => Outcome::Done,
            Some(FAIL) => Outcome::Fail(error(said)),
            Some(RELEASE) => {
                let wait = self.wait_of(task, context).await;
                Outcome::Release { at: Some(When::After(wait)), started: true }
            }
            Some(code) if CANNOT_RUN.contains(&code) => {
                let why = if said.is_empty() { String::new() } else { format!(": {said}") };
                self.broken.tell(&context.queue, format!("exit status {code}{why}"));
                // It did not run: its attempt does not count, however often.
                Outcome::Release { at: None, started: false }
            }
            _ => Outcome::Error(error(said)),
        }
    }

    /// What a URL's answer makes of the task.
    async fn judged(&self, verdict: Verdict, task: &ClaimedTask, context: &Context) -> Outcome {
        match verdict {
            Verdict::Done(said) => {
                let mut output = Output::of(self.mill.store().limits().result_bytes);
                output.push(&said);
                // Cut to what is allowed, it is not refused.
                match output.into_result().0.map(|result| context.result_payload(result)) {
                    Some(Err(error)) => Outcome::Fail(error.to_string()),
                    Some(Ok(())) | None => Outcome::Done,
                }
            }
            Verdict::Fail(why) => Outcome::Fail(why),
            Verdict::Error(why) => Outcome::Error(why),
            Verdict::Release(after) => {
                let after = match after {
                    Some(after) => after,
                    None => self.wait_of(task, context).await,
                };
                Outcome::Release { at: Some(When::After(after)), started: true }
            }
        }
    }

    /// How long a task waits that is given back and says no time.
    async fn wait_of(&self, task: &ClaimedTask, context: &Context) -> Duration {
        let backoff = match task.settings.backoff() {
            Some(own) => own,
            None => self.backoff(context).await,
        };
        let spread = backoff::spread(task.id, task.claims);
        backoff::wait(&backoff, task.returns(), spread)
    }

    /// Whether standard output is the task's result: somebody waits for it, also since
    /// it was claimed, or its queue keeps results.
    async fn is_result(&self, context: &Context) -> bool {
        if context.is_wanted() {
            return true;
        }
        let store = self.mill.store();
        let endings = store.endings(&[context.id]).await.unwrap_or_default();
        if matches!(endings.first(), Some(Ending::Open { wanted: true })) {
            return true;
        }
        self.settings(context).await.is_some_and(|settings| settings.keep_result.is_some())
    }

    async fn settings(&self, context: &Context) -> Option<Settings> {
        let queues = self.mill.inspect().queues().await.unwrap_or_default();
        let queue = queues.into_iter().find(|queue| queue.name == context.queue);
        queue.map(|queue| queue.settings)
    }

    /// The queue's backoff as it is now: an operator may have changed it.
    async fn backoff(&self, context: &Context) -> Backoff {
        self.settings(context).await.map_or_else(Backoff::default, |settings| settings.backoff)
    }
}

/// A handler's command, in a group of its own: Ctrl-C in our terminal is ours to hear,
/// and what the program starts can be ended with it.
fn program(command: &str, how: &How) -> Command {
    let mut command = handler::command(command);
    command.stderr(Stdio::piped()).process_group(0);
    for name in OURS {
        command.env_remove(name);
    }
    if let Some(url) = &how.store {
        command.env("GRISTMILL_STORE", url.reveal());
    }
    command
}

/// A task of the runtime that ends with whoever waits for it.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps what the program says for who waits.
async fn gather(said: Option<impl AsyncRead + Unpin>, output: Arc<Mutex<Output>>) {
    let Some(mut said) = said else { return };
    let mut buffer = [0u8; 4096];
    while let Ok(read) = said.read(&mut buffer).await {
        let Some(said) = buffer.get(..read).filter(|said| !said.is_empty()) else { return };
        output.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }
}

/// Keeps the end of what the program says, and shows all of it. Nothing waits for
/// who reads it: neither the program nor a thread of the runtime, which has leases
/// to keep.
async fn listen(said: Option<impl AsyncRead + Unpin>, tail: Arc<Mutex<Tail>>) {
    let Some(mut said) = said else { return };
    let mut buffer = [0u8; 4096];
    while let Ok(read) = said.read(&mut buffer).await {
        let Some(said) = buffer.get(..read).filter(|said| !said.is_empty()) else { return };
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(said);
        stderr::show(said.to_vec());
    }
}
