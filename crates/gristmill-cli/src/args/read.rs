//! What was typed after `stats`, `list`, `failed` and `show`.

use clap::Args;

use super::CauseArgs;

const STATS: &str = "\
Examples:
  gristmill stats
  gristmill stats emails --json
  gristmill stats --watch                 again every 2 seconds, with rates; Ctrl-C ends it
  gristmill stats --watch=10s --json      one line each time

With --json: [{\"queue\",\"ready\",\"delayed\",\"blocked\",\"processing\",\"failed\",\"total\",\"wait_ms\",
\"paused\",\"counters\"}]. wait_ms is how long the oldest ready task has been waiting. With --watch
each has \"rates\" as well: {\"put\",\"done\",\"failed\"} a second since the time before.";

const TOP: &str = "\
Examples:
  gristmill top
  gristmill --store postgres://localhost/shop top --every 5s

Keys: q leaves, arrows choose a row, tab goes from queues to workers to failures, p pauses the chosen
queue or lets it go on, r retries (all failed tasks of the queue, or the chosen failure; it asks
before), space freezes, ? explains. Without a terminal: 'gristmill stats --watch'.";

const LIST: &str = "\
Examples:
  gristmill list emails --state delayed
  gristmill list --key ada --json
  gristmill list --limit 1000";

const FAILED: &str = "\
Examples:
  gristmill failed
  gristmill failed emails --limit 200
  gristmill failed --by-error                  how many failed of which error
  gristmill failed --error 'connection refused' --since 1h

What failed last comes first (with over 50,000 failed tasks and nothing narrower asked for: what was
put last, which is said). --by-error counts errors that differ only in numbers, ids and quoted words
as one; 'retry', 'resolve' and 'discard' take the same --error and --since.

With --by-error --json: [{\"error\",\"count\",\"first\",\"last\",\"queues\",\"example\"}]; first and last are
when one failed, and example is the id of the last.";

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

    /// Show them again and again, with what moved a second
    #[arg(long, value_name = "EVERY", num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    pub(crate) watch: Option<String>,
}

/// `list`.
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

    /// Only tasks with this in their payload: every one of them is looked at
    #[arg(long, value_name = "TEXT")]
    pub(crate) payload: Option<String>,

    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// `failed`.
#[derive(Debug, Args)]
#[command(after_help = FAILED)]
pub(crate) struct FailedArgs {
    /// Only this queue
    pub(crate) queue: Option<String>,

    /// Count them by their errors
    #[arg(long)]
    pub(crate) by_error: bool,

    #[command(flatten)]
    pub(crate) cause: CauseArgs,

    #[arg(long, value_name = "S", hide = true)]
    pub(crate) state: Option<String>,

    /// Only tasks with this key
    #[arg(long, value_name = "K")]
    pub(crate) key: Option<String>,

    /// At most this many, of tasks or of errors
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

/// `top`.
#[derive(Debug, Args)]
#[command(after_help = TOP)]
pub(crate) struct TopArgs {
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) every: String,

    /// Who acts [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}
