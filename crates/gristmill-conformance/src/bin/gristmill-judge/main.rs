//! `gristmill-judge`: runs clients as processes over any store, does harm to them
//! by seed, and judges what they wrote down.

mod args;
mod client;
mod clock;
mod disk;
mod ledger;
mod nemesis;
mod place;
mod report;
mod run;
mod server;
mod site;
mod store;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

/// What is said when something cannot be done.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// A violation was found.
const FOUND: u8 = 1;
/// It could not be run.
const NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Run(order) => run::run(&order, cli.json),
        Command::Judge { folder } => report::judge(&folder, cli.json),
        Command::Faults { store } => {
            report::faults(&store, cli.json);
            Ok(true)
        }
        Command::Ledger { file } => ledger::sum_up(&file, cli.json),
        Command::Client(order) => client::run(&order).map(|()| true),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FOUND),
        Err(why) => {
            eprintln!("gristmill-judge: {why}");
            ExitCode::from(NOT_RUN)
        }
    }
}
