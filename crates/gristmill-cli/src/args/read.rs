//! What was typed after `stats`, `list`, `failed` and `show`.

use clap::Args;

const STATS: &str = "\
Examples:
  gristmill stats
  gristmill stats emails --json

With --json: [{\"queue\",\"ready\",\"delayed\",\"blocked\",\"processing\",\"failed\",\"total\",\"wait_ms\",
\"paused\"}]. wait_ms is how long the oldest ready task has been waiting.";

const LIST: &str = "\
Examples:
  gristmill list emails --state delayed
  gristmill list --key ada --json
  gristmill failed --limit 200
  gristmill failed emails";

const SHOW: &str = "\
Examples:
  gristmill show 42
  gristmill show 42 --json";

/// `stats`.
#[derive(Debug, Args)]
#[command(after_help = STATS)]
pub(crate) struct StatsArgs {
    /// Only this queue
    pub(crate) queue: Option<String>,
}

/// `list` and `failed`.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(crate) struct ListArgs {
    /// Only this queue
    pub(crate) queue: Option<String>,

    /// Only tasks in this state: pending (ready, delayed or blocked), processing, failed, done
    #[arg(long, value_name = "S")]
    pub(crate) state: Option<String>,

    /// Only tasks with this key
    #[arg(long, value_name = "K")]
    pub(crate) key: Option<String>,

    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// `show`.
#[derive(Debug, Args)]
#[command(after_help = SHOW)]
pub(crate) struct ShowArgs {
    /// The task
    pub(crate) id: String,
}
