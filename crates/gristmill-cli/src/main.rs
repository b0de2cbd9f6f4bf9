//! The `gristmill` command: parse, build, run, and map errors to exit codes.
//!
//! What was typed is in `args`, what it means in `command`; both are thin over
//! the library.

mod args;
mod bench;
mod claimed;
mod command;
mod config;
mod contracts;
mod crew;
mod exec;
mod failure;
mod hook;
mod log;
mod notify;
mod output;
mod program;
mod progress;
mod secret;
mod serve;
mod stderr;
mod store;
mod stubs;
mod top;
#[cfg(feature = "otel")]
mod trace;
mod usage;
mod when;

use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use command::{Command, Session};
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    if let Some(ended) = exec::become_one() {
        return ended;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::answer(&error),
    };
    let json = cli.json;
    stderr::speak(cli.log);
    let ended = match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(json);
            ExitCode::from(failure.exit.code())
        }
    };
    stderr::finish();
    ended
}

fn run(cli: Cli) -> Result<(), Failure> {
    if cli.quiet {
        progress::hush();
    }
    let command = Command::meant(cli.command)?;
    let mut session = Session { store: None, output: Output { json: cli.json } };
    session.find_store(&command, cli.store)?;
    if command.stays() {
        stderr::stay();
    }
    // A store that does not answer is told of by every command.
    log::show(log::DEFAULT);
    let runtime = runtime(&command).map_err(|error| Failure::io("the runtime", &error))?;
    let ended = runtime.block_on(command.run(&session));
    // A thread that is blocked is not waited for: all is said and done.
    runtime.shutdown_background();
    #[cfg(feature = "otel")]
    trace::finish();
    ended
}

/// One thread is enough to ask and answer; who stays and works gets a second,
/// so that a slow line of output does not hold up a claim.
fn runtime(command: &Command) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = if command.stays() {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build()
}
