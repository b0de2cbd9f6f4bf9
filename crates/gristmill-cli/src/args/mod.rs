//! What was typed: the command line as clap reads it, word for word.
//!
//! Nothing here is checked beyond its shape. What the words mean (durations,
//! names, times) is decided in [`crate::command`].

mod audit;
mod bench;
mod claim;
mod contract;
mod copy;
mod init;
mod operate;
mod operations;
mod put;
mod queue;
mod read;
mod schedules;
mod store;
mod token;
mod work;
mod workers;

pub(crate) use audit::AuditArgs;
pub(crate) use bench::BenchArgs;
pub(crate) use claim::{ClaimArgs, DoneArgs, ExtendArgs, FailArgs, HeldArgs, SettleArgs};
pub(crate) use contract::{
    ContractCheckArgs, ContractCommand, ContractRegisterArgs, ContractSchemaArgs, GenerateArgs,
    Language,
};
pub(crate) use copy::CopyArgs;
pub(crate) use init::InitArgs;
pub(crate) use operate::{CauseArgs, FailedOperateArgs, OperateArgs, PauseArgs, RetryArgs};
pub(crate) use operations::{OperationsArgs, OperationsCommand};
pub(crate) use put::PutArgs;
pub(crate) use queue::{QueueAddArgs, QueueCommand, QueueResetArgs, QueueSetArgs};
pub(crate) use read::{FailedArgs, ListArgs, ShowArgs, StatsArgs, TopArgs};
pub(crate) use schedules::{
    MissedArg, OverlapArg, ScheduleAddArgs, ScheduleArgs, SchedulePauseArgs, SchedulesArgs,
    SchedulesCommand,
};
pub(crate) use store::TypedUrl;
pub(crate) use token::{TokenCommand, TokenCreateArgs, TokenRevokeArgs};
pub(crate) use work::{ServeArgs, UpArgs, WorkArgs};
pub(crate) use workers::{WorkerArgs, WorkersArgs, WorkersCommand};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0    done as asked
  1    something went wrong
  2    the command line or the configuration cannot be understood
  3    refused: a task was not taken, what was named is not there, nothing was due for a claim, a
       lease was lost, or tasks failed in a drain
  4    the store is busy or away: the same command may succeed later
  5    the store cannot be used: missing, no store, damaged, newer, no permission
  75   put --wait: the task has not ended in time; else with its program's status
  130  interrupted before the work was done

Try:
  gristmill queue add emails
  gristmill put emails '{\"to\":\"ada@example.org\"}'
  gristmill work emails --exec 'cat; echo' --drain
  gristmill stats";

const GLOBAL: &str = "Global options";

/// Queues for every language: put work on a queue now, have it done later, lose nothing.
#[derive(Debug, Parser)]
#[command(name = "gristmill", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    /// The store, like sqlite://gristmill.db or files://spool [default: what ./gristmill.yaml says, else
    /// sqlite://gristmill.db]
    #[arg(long, global = true, value_name = "URL", env = "GRISTMILL_STORE", hide_env_values = true, help_heading = GLOBAL)]
    pub(crate) store: Option<TypedUrl>,

    /// Answer in JSON with stable field names; errors too
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,

    /// Show no progress of what takes long
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,

    /// How lines on standard error are written: for people, or one JSON object a line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, help_heading = GLOBAL)]
    pub(crate) log: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How lines on standard error are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line: at, level, message, and its facts
    Json,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run everything gristmill.yaml describes: queues, handlers, schedules, HTTP, seeded tasks
    Up(UpArgs),
    /// As up, without handlers: HTTP for workers elsewhere
    Serve(ServeArgs),
    /// Declare, change and list queues
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Put a task on a queue, or many from a file
    Put(PutArgs),
    /// Run a command for each task
    Work(WorkArgs),
    /// Take tasks under a lease: a shell script can be a worker
    Claim(ClaimArgs),
    /// End the attempt of a claimed task: done, error, retry, fail or release
    Settle(SettleArgs),
    /// End the attempt of a claimed task as done
    Done(DoneArgs),
    /// End the attempt of a claimed task as failed for good
    Fail(FailArgs),
    /// Keep what was claimed for longer
    Extend(ExtendArgs),
    /// Show the numbers of every queue
    Stats(StatsArgs),
    /// Watch queues, workers and failures live, and act on them by keys
    Top(TopArgs),
    /// Show who works on what, and what the manager said; or have a worker be quiet or stop
    Workers(WorkersArgs),
    /// List tasks
    List(ListArgs),
    /// Show one task with all its attempts
    Show(ShowArgs),
    /// List failed tasks, what failed last first; or count them by their errors
    Failed(FailedArgs),
    /// Run failed tasks again
    #[command(after_help = operate::RETRY)]
    Retry(RetryArgs),
    /// Take failed tasks off the list: they were dealt with by hand
    #[command(after_help = operate::RESOLVE)]
    Resolve(FailedOperateArgs),
    /// Delete failed tasks
    #[command(after_help = operate::DISCARD)]
    Discard(FailedOperateArgs),
    /// Delete waiting tasks and stop running ones
    #[command(after_help = operate::CANCEL)]
    Cancel(OperateArgs),
    /// Stop claims of queues; puts go on
    #[command(after_help = operate::PAUSE)]
    Pause(PauseArgs),
    /// Let paused queues go on
    #[command(after_help = operate::RESUME)]
    Resume(PauseArgs),
    /// Show what is being done to all tasks that match a filter, or stop it
    Operations(OperationsArgs),
    /// Show what fires when; add, pause, resume, fire and remove schedules
    Schedules(SchedulesArgs),
    /// Show what operators did, the newest first
    Audit(AuditArgs),
    /// Make, list and revoke the tokens that HTTP asks for
    #[command(subcommand)]
    Token(TokenCommand),
    /// Copy the store to a file while it is in use
    #[command(after_help = BACKUP)]
    Backup(BackupArgs),
    /// Copy what stands in one store to another: queues, tasks, schedules
    #[command(after_help = copy::EXAMPLES)]
    Copy(CopyArgs),
    /// Bring the store's schema to the newest version
    #[command(after_help = MIGRATE)]
    Migrate(MigrateArgs),
    /// Say what is not as it should be, and what to do about it
    #[command(after_help = DOCTOR)]
    Doctor(DoctorArgs),
    /// Check the store for damage
    #[command(after_help = CHECK)]
    Check,
    /// Measure the store's rates beside the bare limits
    Bench(BenchArgs),
    /// Begin a project: a contract, a configuration, handlers
    Init(InitArgs),
    /// Check, compare, print and register contracts
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Write typed Rust or Python from a contract
    Generate(GenerateArgs),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the manual page, or write those of all commands
    #[command(after_help = MAN)]
    Man(ManArgs),
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
}

const BACKUP: &str = "\
Examples:
  gristmill backup monday.db
  gristmill --store sqlite:///srv/app.db backup /backups/app.db

The copy is a store like any other: open it with --store.";

const MIGRATE: &str = "\
Examples:
  gristmill --store postgres://localhost/shop migrate
  gristmill --store postgres://localhost/shop migrate --print > schema.sql
  gristmill --store postgres://localhost/shop migrate --roles
  gristmill --store postgres://localhost/shop migrate --roles --print > roles.sql

The script that --print shows is run in one transaction; no server is asked for
it. --roles also makes the roles that SQL clients are granted (docs/sql.md), for
which the connecting role needs CREATEROLE; with --print it shows only how they
are made, for somebody who has it. What somebody removed or changed by hand of the
functions and views is made again. Other stores than PostgreSQL are brought up to
date when they are opened.";

const DOCTOR: &str = "\
Examples:
  gristmill doctor
  gristmill doctor --json || notify-somebody
  gristmill doctor --strict > /dev/null || notify-somebody     notes count as well: for cron

Nothing is changed. The exit code is 5 when something grave was found: work is lost, stands still or is
about to. Failed tasks are a note.";

const CHECK: &str = "\
Example:
  gristmill check && echo sound";

const MAN: &str = "\
Examples:
  gristmill man | man -l -
  gristmill man --out ~/.local/share/man/man1";

const COMPLETIONS: &str = "\
Examples:
  gristmill completions bash > ~/.local/share/bash-completion/completions/gristmill
  gristmill completions fish > ~/.config/fish/completions/gristmill.fish";

/// `migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Show the statements that make the schema, and change nothing
    #[arg(long)]
    pub(crate) print: bool,

    /// Make the roles of SQL clients as well, or with --print show only them
    #[arg(long)]
    pub(crate) roles: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// End with exit code 5 for notes as well
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Where the copy goes; it must not be there yet
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every mistake in the configuration, and change nothing
    #[command(after_help = "Example:\n  gristmill config check --config production.yaml")]
    Check(ConfigCheckArgs),
    /// Show every value that is in force, and where it comes from; no secret is shown
    #[command(after_help = CONFIG_SHOW)]
    Show(ConfigCheckArgs),
}

const CONFIG_SHOW: &str = "\
Examples:
  gristmill config show
  gristmill config show --config production.yaml --json | jq '.[] | select(.from != \"default\")'

With --json: [{\"name\",\"value\",\"from\",\"file\",\"line\",\"kept_in\"}]; from is one of default, file,
contract, environment, flag. What operators changed in the store stands over it: 'gristmill queue
list' shows that.";

/// `config check` and `config show`.
#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "gristmill.yaml")]
    pub(crate) config: PathBuf,
}

/// `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn look(command: &clap::Command, path: &str, without: &mut Vec<String>) {
            for sub in command.get_subcommands() {
                let path = format!("{path} {}", sub.get_name());
                if sub.has_subcommands() {
                    look(sub, &path, without);
                } else if !sub.get_after_help().is_some_and(|h| h.to_string().contains("xample")) {
                    without.push(path);
                }
            }
        }
        let mut without = Vec::new();
        look(&Cli::command(), "gristmill", &mut without);
        assert!(without.is_empty(), "no examples: {without:?}");
    }
}
