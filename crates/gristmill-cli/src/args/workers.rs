//! What was typed after `workers`.

use clap::{Args, Subcommand};

const WORKERS: &str = "\
Examples:
  gristmill workers
  gristmill workers --json
  gristmill workers quiet 5f0c1b2a              claims no more; what runs finishes
  gristmill workers move 5f0c1b2a emails

A worker hears of it within eight seconds; one that works over HTTP only if
its token is good for admin.

With --json: [{\"worker\",\"host\",\"pid\",\"version\",\"queues\",\"processors\":[{\"queue\",\"holding\",
\"cycle_ms\"}],\"holding\",\"follows_term\",\"assigned\":[{\"queue\",\"processors\"}],\"manager_term\",
\"stopping\",\"quiet\",\"since\",\"silent_ms\"}]. A processor without a queue rotates.";

/// `workers`.
#[derive(Debug, Args)]
#[command(after_help = WORKERS)]
pub(crate) struct WorkersArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WorkersCommand>,
}

/// What to do with one.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkersCommand {
    /// Have a worker claim no more; what runs finishes
    #[command(after_help = "Example:\n  gristmill workers quiet 5f0c1b2a --by ada")]
    Quiet(WorkerArgs),
    /// Let a quiet worker go on
    #[command(after_help = "Example:\n  gristmill workers resume 5f0c1b2a")]
    Resume(WorkerArgs),
    /// Have a worker stop as if it had been asked where it runs
    #[command(after_help = "Example:\n  gristmill workers stop 5f0c1b2a")]
    Stop(WorkerArgs),
    /// Have one more of its processors serve one queue; without a queue all go round again
    #[command(
        after_help = "Examples:\n  gristmill workers move 5f0c1b2a emails\n  gristmill workers move 5f0c1b2a"
    )]
    Move(WorkerMoveArgs),
}

/// `workers quiet`, `resume` and `stop`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The worker, or as much of its id's beginning as is its own
    pub(crate) worker: String,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// `workers move`.
#[derive(Debug, Args)]
pub(crate) struct WorkerMoveArgs {
    #[command(flatten)]
    pub(crate) which: WorkerArgs,

    /// The queue
    pub(crate) queue: Option<String>,
}
