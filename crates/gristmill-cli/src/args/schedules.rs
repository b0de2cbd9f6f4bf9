//! What was typed after `schedules`.

use clap::{Args, Subcommand};

const SCHEDULES: &str = "\
Examples:
  gristmill schedules                  all of them, with last and next fire
  gristmill schedules pause morning
  gristmill schedules fire morning     puts its task now

Schedules are declared in gristmill.yaml or in code, and fire while 'gristmill up' or a program
with a scheduler runs.";

const PAUSE: &str = "\
Examples:
  gristmill schedules pause morning
  gristmill schedules pause morning --by ada";

const RESUME: &str = "\
Example:
  gristmill schedules resume morning

What it would have fired meanwhile is not made up for.";

const FIRE: &str = "\
Example:
  gristmill schedules fire morning

Works while it is paused. The next fire by its rule comes as if this had not been.";

const REMOVE: &str = "\
Example:
  gristmill schedules remove morning

Its tasks stay. A schedule that is still in gristmill.yaml comes back with the next 'up'.";

/// `schedules`.
#[derive(Debug, Args)]
#[command(after_help = SCHEDULES)]
pub(crate) struct SchedulesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SchedulesCommand>,
}

/// What to do with one.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// List all schedules
    #[command(after_help = "Example:\n  gristmill schedules list --json")]
    List,
    /// Let a schedule fire no more
    #[command(after_help = PAUSE)]
    Pause(SchedulePauseArgs),
    /// Let a paused schedule go on
    #[command(after_help = RESUME)]
    Resume(SchedulePauseArgs),
    /// Fire a schedule by hand, now
    #[command(after_help = FIRE)]
    Fire(ScheduleArgs),
    /// Delete a schedule
    #[command(after_help = REMOVE)]
    Remove(ScheduleArgs),
}

/// `schedules pause` and `resume`.
#[derive(Debug, Args)]
pub(crate) struct SchedulePauseArgs {
    /// The schedule
    pub(crate) name: String,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// `schedules fire` and `remove`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// The schedule
    pub(crate) name: String,
}
