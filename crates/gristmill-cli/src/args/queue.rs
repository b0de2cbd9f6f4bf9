//! What was typed after `queue`.

use clap::{Args, Subcommand};
use gristmill_contract::settings;

const ADD: &str = "\
Examples:
  gristmill queue add emails
  gristmill queue add emails max_attempts=3 timeout=30s backoff.base=5s
  gristmill queue add syncs unique=active capacity=10000 keep_done=7d
  gristmill queue add exports concurrency=2 concurrency_per=group
  gristmill queue add calls rate=100/minute burst=10";

const SET: &str = "\
Examples:
  gristmill queue set emails max_attempts=10 --by ada
  gristmill queue reset emails

A change stands over the configuration and the code until it is reset.";

const RESET: &str = "\
Example:
  gristmill queue reset emails";

const LIST: &str = "\
Examples:
  gristmill queue list
  gristmill queue list --json";

fn add_help() -> String {
    format!("{ADD}\n\nSettings: {}.", settings::NAMES.join(", "))
}

/// `queue`.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Declare a queue, or say its settings anew
    #[command(after_help = add_help())]
    Add(QueueAddArgs),
    /// Change settings by hand; wins until reset
    #[command(after_help = SET)]
    Set(QueueSetArgs),
    /// Take back what was changed by hand
    #[command(after_help = RESET)]
    Reset(QueueResetArgs),
    /// List the queues and the settings that are not the default
    #[command(after_help = LIST)]
    List,
}

/// `queue add`.
#[derive(Debug, Args)]
pub(crate) struct QueueAddArgs {
    /// The queue
    pub(crate) name: String,

    /// Settings; what is not said keeps its default
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
}

/// `queue set`.
#[derive(Debug, Args)]
pub(crate) struct QueueSetArgs {
    /// The queue
    pub(crate) name: String,

    /// The changes
    #[arg(value_name = "NAME=VALUE", required = true)]
    pub(crate) settings: Vec<String>,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// `queue reset`.
#[derive(Debug, Args)]
pub(crate) struct QueueResetArgs {
    /// The queue
    pub(crate) name: String,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}
