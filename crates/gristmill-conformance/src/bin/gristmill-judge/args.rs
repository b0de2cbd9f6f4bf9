//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use gristmill_conformance::judge::{FaultKind, Role};

/// Runs clients over a store, does harm to them by seed, and judges what they
/// wrote down.
///
/// Every client writes each call down before it is made and each answer after it,
/// in a file of its own. The verdict rests on those files and on what the store
/// holds at the end, and on nothing else.
///
/// Exit code: 0 when nothing was found, 1 when something was, 2 when it could not
/// be run.
#[derive(Debug, Parser)]
#[command(name = "gristmill-judge", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Answer in JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs clients and faults for some time, and judges.
    Run(RunOrder),
    /// Judges the folder of a run once more.
    Judge {
        /// The folder: journals, plan.json and standing.json.
        folder: PathBuf,
    },
    /// Says which faults can be done to a store on this machine.
    Faults {
        /// The store, as for `run`.
        #[arg(long, default_value = "sqlite:")]
        store: String,
    },
    /// Sums up what the runs of a ledger came to.
    Ledger {
        /// The file.
        #[arg(default_value = "target/judge/ledger.jsonl")]
        file: PathBuf,
    },
    /// A client of a run, started by it.
    #[command(hide = true)]
    Client(ClientOrder),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunOrder {
    /// The store: `memory:`, `sqlite:`, `files:` or `postgres:` for a fresh one of
    /// the run's own, or a URL. What stands at a URL is worked off at the end.
    #[arg(long, default_value = "sqlite:")]
    pub(crate) store: String,
    /// What the dice begin with. The same seed makes the same choices; when they
    /// take effect is up to the machine.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How long clients and faults go on.
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) minutes: Option<u64>,
    /// The same in seconds.
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
    /// Which faults, separated by commas; all that the store has and the machine
    /// allows when not said, none with `none`. See `gristmill-judge faults`.
    #[arg(long)]
    pub(crate) faults: Option<String>,
    /// Clients that put.
    #[arg(long, default_value_t = 2)]
    pub(crate) producers: usize,
    /// Clients that work.
    #[arg(long, default_value_t = 3)]
    pub(crate) workers: usize,
    /// How many seconds the end may take, when faults are over, leases that are left
    /// run out, and what stands is worked off.
    #[arg(long, default_value_t = 120)]
    pub(crate) patience: u64,
    /// Where journals and the verdict are kept; a folder of the run's own below
    /// `target/judge` when not said.
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Keep the folder although nothing was found.
    #[arg(long)]
    pub(crate) keep: bool,
    /// The file to which the run's result is appended, a line of JSON.
    #[arg(long, default_value = "target/judge/ledger.jsonl")]
    pub(crate) ledger: PathBuf,
    /// Clients do not rest between calls.
    #[arg(long)]
    pub(crate) restless: bool,
    /// Say nothing while it runs.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl RunOrder {
    /// How long clients and faults go on.
    pub(crate) fn time(&self) -> std::time::Duration {
        let minutes = self.minutes.map(|minutes| minutes * 60);
        std::time::Duration::from_secs(self.seconds.or(minutes).unwrap_or(60))
    }

    /// The faults that were asked for; nothing when none was named.
    pub(crate) fn wanted(&self) -> Result<Option<Vec<FaultKind>>, String> {
        match self.faults.as_deref() {
            None => Ok(None),
            Some("none") => Ok(Some(Vec::new())),
            Some(list) => {
                list.split(',').map(|word| word.trim().parse()).collect::<Result<_, _>>().map(Some)
            }
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ClientOrder {
    /// The store.
    #[arg(long, env = "GRISTMILL_JUDGE_STORE", hide_env_values = true)]
    pub(crate) store: String,
    /// What it does.
    #[arg(long)]
    pub(crate) role: Role,
    /// Its name.
    #[arg(long)]
    pub(crate) name: String,
    /// The run's folder.
    #[arg(long)]
    pub(crate) folder: PathBuf,
    /// What its dice begin with.
    #[arg(long)]
    pub(crate) seed: u64,
    /// Does not rest between calls.
    #[arg(long)]
    pub(crate) restless: bool,
    /// The file that says how far the wall clock has jumped.
    #[arg(long)]
    pub(crate) clock: Option<PathBuf>,
}
