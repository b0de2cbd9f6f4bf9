//! What was typed after `operations`.

use clap::{Args, Subcommand};

const OPERATIONS: &str = "\
Examples:
  gristmill operations                 all of them, the newest first
  gristmill operations show ID
  gristmill operations stop ID --by ada

They are begun over HTTP (POST /v1/tasks/retry with a filter) and carried out by 'gristmill up' or
'serve'; they go on after a restart. One that ended is kept for a week.";

/// `operations`.
#[derive(Debug, Args)]
#[command(after_help = OPERATIONS)]
pub(crate) struct OperationsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<OperationsCommand>,
}

/// What to do with one.
#[derive(Debug, Subcommand)]
pub(crate) enum OperationsCommand {
    /// List all operations
    #[command(after_help = "Example:\n  gristmill operations list --json")]
    List,
    /// Show one operation
    #[command(after_help = "Example:\n  gristmill operations show 0648a1b2c3d4e5f6a7b8c9d0e1")]
    Show(OperationArgs),
    /// Have an operation end after the step it is at; what is done stays done
    #[command(
        after_help = "Example:\n  gristmill operations stop 0648a1b2c3d4e5f6a7b8c9d0e1 --by ada"
    )]
    Stop(OperationStopArgs),
}

/// `operations show`.
#[derive(Debug, Args)]
pub(crate) struct OperationArgs {
    /// The operation
    pub(crate) id: String,
}

/// `operations stop`.
#[derive(Debug, Args)]
pub(crate) struct OperationStopArgs {
    /// The operation
    pub(crate) id: String,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}
