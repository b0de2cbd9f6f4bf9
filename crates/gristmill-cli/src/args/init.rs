//! What was typed after `init`.

use std::path::PathBuf;

use clap::Args;

use super::Language;

const EXAMPLES: &str = "\
Examples:
  gristmill init --exec mail        handlers that are programs: cd mail && gristmill up
  gristmill init mail               a Rust project: cd mail && cargo run
  gristmill init mail --contract queues.yaml
                                    the same, with a handler for each of your own queues
  gristmill init mail --lang python --contract queues.yaml
                                    a worker in Python (or typescript) over the service";

/// `init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The folder of the new project; it must be empty or not there yet
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Handlers that are programs instead of Rust
    #[arg(long)]
    pub(crate) exec: bool,

    /// The language of the handlers
    #[arg(long, value_enum, value_name = "LANG", default_value_t, conflicts_with = "exec")]
    pub(crate) lang: Language,

    /// Your own contract: the project has a handler for each of its queues, for you to
    /// fill in
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,

    /// The clone of gristmill whose crates or client the project uses [default: the one
    /// this program was built from]
    #[arg(long, value_name = "DIR", conflicts_with = "exec")]
    pub(crate) gristmill: Option<PathBuf>,
}
