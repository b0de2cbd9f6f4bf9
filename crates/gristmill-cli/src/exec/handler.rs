//! Our own program as a handler's first step: it asks to be ended with the worker
//! that started it, and then becomes `sh -c CMD`.
//!
//! Between starting a program and running its code there is no safe place to ask
//! for that, so the program that is started is ourselves.

use std::process::ExitCode;

use tokio::process::Command;

/// The word before a handler's command. No verb is called like this.
const WORD: &str = "--handler-of";

/// What a shell answers for a command that it does not find.
const NOT_FOUND: u8 = 127;
/// Our worker died before we could ask: nothing was run.
const NOBODY: u8 = 75;

/// The command that runs a handler's, ended with this process where the system
/// can do that.
pub(super) fn command(handler: &str) -> Command {
    if cfg!(target_os = "linux") {
        let mut command = Command::new("/proc/self/exe");
        command.arg(WORD).arg(std::process::id().to_string()).arg(handler);
        command
    } else {
        let mut command = Command::new("sh");
        command.arg("-c").arg(handler);
        command
    }
}

/// Becomes the handler, if that is what this process was started for.
#[must_use]
pub(crate) fn become_one() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let (worker, handler) = (words.next()?, words.next()?);
    let worker: Option<i32> = worker.to_str().and_then(|worker| worker.parse().ok());
    Some(run(worker?, &handler))
}

#[cfg(target_os = "linux")]
fn run(worker: i32, handler: &std::ffi::OsStr) -> ExitCode {
    use std::io::Write;
    use std::os::unix::process::CommandExt;

    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    // Where it is denied the handler runs all the same: it is only not ended.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // It may have died before: then nobody would end us.
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(worker) {
        return ExitCode::from(NOBODY);
    }
    let error = std::process::Command::new("sh").arg("-c").arg(handler).exec();
    let _ = writeln!(std::io::stderr(), "sh could not be started: {error}");
    ExitCode::from(NOT_FOUND)
}

#[cfg(not(target_os = "linux"))]
fn run(_: i32, _: &std::ffi::OsStr) -> ExitCode {
    ExitCode::from(NOBODY + NOT_FOUND)
}
