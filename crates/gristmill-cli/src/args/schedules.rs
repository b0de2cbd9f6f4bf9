//! What was typed after `schedules`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

const SCHEDULES: &str = "\
Examples:
  gristmill schedules                  all of them, with last and next fire
  gristmill schedules pause morning
  gristmill schedules fire morning     puts its task now

Schedules are declared in gristmill.yaml, in code or by 'schedules add', and fire while 'gristmill
up' or a program with a scheduler runs.";

const ADD: &str = "\
Examples:
  gristmill schedules add morning emails '{\"to\":\"all\"}' --cron '0 7 * * 1-5'
  gristmill schedules add tick feeds '{}' --every 10m --overlap skip
  gristmill schedules add report reports '{}' --cron '0 18 * * *' --zone Europe/Athens

A cron expression is minute, hour, day, month and weekday, in your zone unless --zone says another.
Added again, a schedule is changed. Times it missed while nothing ran are made up for by --missed.";

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
    /// Declare a schedule, or say it anew
    #[command(after_help = ADD)]
    Add(ScheduleAddArgs),
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

/// `schedules add`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("rule").required(true))]
pub(crate) struct ScheduleAddArgs {
    /// The schedule
    pub(crate) name: String,

    /// The queue it puts tasks on
    pub(crate) queue: String,

    /// The data of its tasks
    #[arg(allow_negative_numbers = true)]
    pub(crate) payload: String,

    /// When: minute, hour, day, month and weekday, like '0 7 * * 1-5'
    #[arg(long, value_name = "EXPR", group = "rule")]
    pub(crate) cron: Option<String>,

    /// How often, like 10m
    #[arg(long, value_name = "DURATION", group = "rule")]
    pub(crate) every: Option<String>,

    /// The time zone, like Europe/Athens [default: yours]
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,

    /// The key of its tasks
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub(crate) key: Option<String>,

    /// What becomes of fires that were missed: put once, skipped, or all put (up to 100)
    #[arg(long, value_enum, value_name = "WHAT", default_value = "once")]
    pub(crate) missed: MissedArg,

    /// Whether it fires while a task of the fire before stands
    #[arg(long, value_enum, value_name = "WHETHER", default_value = "allow")]
    pub(crate) overlap: OverlapArg,
}

/// What becomes of missed fires.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MissedArg {
    Once,
    Skip,
    All,
}

/// What a fire does while a task of the one before stands.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OverlapArg {
    Allow,
    Skip,
}
