//! What was typed after `retry`, `resolve`, `discard`, `cancel`, `pause` and
//! `resume`.

use clap::Args;

pub(crate) const RETRY: &str = "\
Examples:
  gristmill retry 42 43
  gristmill retry --queue emails --note 'mail server is back'
  gristmill retry --error 'connection refused' --since 1h
  gristmill retry --queue emails --limit 10            ten of them, to see whether it helps
  gristmill retry --queue emails --at 'tomorrow 9:00'
  gristmill retry --all

A task whose key has another waiting task stays failed.";

pub(crate) const RESOLVE: &str = "\
Examples:
  gristmill resolve 42 --note 'refunded by hand'
  gristmill resolve --queue refunds --key order-7";

pub(crate) const DISCARD: &str = "\
Examples:
  gristmill discard 42
  gristmill discard --queue emails --by ada
  gristmill discard --error \"no user '…'\"               as 'failed --by-error' shows it";

pub(crate) const CANCEL: &str = "\
Examples:
  gristmill cancel 42
  gristmill cancel --queue emails --key ada
  gristmill cancel --all

A running task's handler is stopped at its next heartbeat.";

pub(crate) const PAUSE: &str = "\
Examples:
  gristmill pause emails
  gristmill pause emails reports --by ada";

pub(crate) const RESUME: &str = "\
Example:
  gristmill resume emails";

/// `cancel`, and what all four have in common.
#[derive(Debug, Args)]
pub(crate) struct OperateArgs {
    /// These tasks
    #[arg(value_name = "ID", conflicts_with_all = ["queue", "key", "all"])]
    pub(crate) ids: Vec<String>,

    /// All of this queue
    #[arg(long, value_name = "Q", conflicts_with = "all")]
    pub(crate) queue: Option<String>,

    /// All with this key
    #[arg(long, value_name = "K", conflicts_with = "all")]
    pub(crate) key: Option<String>,

    /// All of all queues
    #[arg(long)]
    pub(crate) all: bool,

    /// At most this many, the oldest first
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    pub(crate) limit: Option<u64>,

    /// Why; kept with the task
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// `resolve` and `discard`.
#[derive(Debug, Args)]
pub(crate) struct FailedOperateArgs {
    #[command(flatten)]
    pub(crate) which: OperateArgs,

    #[command(flatten)]
    pub(crate) cause: CauseArgs,
}

/// Which failures.
#[derive(Debug, Default, Args)]
pub(crate) struct CauseArgs {
    /// Whose error contains this text; '#' and '…' stand for what 'failed --by-error' folds
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) error: Option<String>,

    /// That failed within this time, like 1h
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
}

/// `retry`.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) which: OperateArgs,

    #[command(flatten)]
    pub(crate) cause: CauseArgs,

    /// Forget what their handlers kept: begin anew, not at the checkpoint
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Not before this much time has passed, like 5s or 1h30m
    #[arg(long, value_name = "DURATION", conflicts_with = "at", allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,

    /// Not before this time: 17:30, 'tomorrow 9:00', '2026-11-15 08:30' (in your zone) or
    /// 2026-11-15T08:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
}

/// `pause` and `resume`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// The queues
    #[arg(required = true, value_name = "QUEUE")]
    pub(crate) queues: Vec<String>,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}
