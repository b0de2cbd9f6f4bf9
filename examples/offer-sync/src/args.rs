//! The command line: what can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::slice::By;

/// Syncs offers in batches that take slices of the same data.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// Where the tasks are: sqlite://PATH or files://FOLDER
    #[arg(long, global = true, value_name = "URL", default_value = "sqlite://offer-tasks.db")]
    #[arg(env = "OFFER_SYNC_STORE")]
    pub(crate) store: String,
    /// The SQLite file with offers and processes
    #[arg(long, global = true, value_name = "PATH", default_value = "offers.db")]
    pub(crate) db: PathBuf,
    /// Batches of a kind that run side by side at most; kept until it is said again
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) slots: Option<u32>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show how running tasks are counted, and clean up (the default)
    Counting,
    /// Make offers and processes to work on
    Seed {
        /// Offers, numbered from 1
        #[arg(long, default_value_t = 1000)]
        offers: u32,
        /// Processes, numbered from 1
        #[arg(long, default_value_t = 300)]
        processes: u32,
    },
    /// Put tasks
    Put {
        /// How slices are taken
        #[arg(long, value_enum, default_value_t = By::Share)]
        by: By,
        /// Batches of offers to sync; `all`: as many as it takes
        #[arg(long, default_value = "0", value_name = "N|all", value_parser = batches)]
        sync: Batches,
        /// Offers in a batch
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Batches of processes to look at
        #[arg(long, default_value_t = 0)]
        check: u32,
        /// Processes in a batch
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        batch_size: u32,
        /// A batch of listed offers to write, like 4006381333931=1999,20=450
        #[arg(long, value_name = "EAN=CENTS,…", value_delimiter = ',', value_parser = offer)]
        upsert: Vec<(i64, i64)>,
        /// What batches are counted with
        #[arg(long, default_value = "all")]
        action: String,
    },
    /// Work off tasks, until Ctrl-C
    Work {
        /// How slices are taken
        #[arg(long, value_enum, default_value_t = By::Share)]
        by: By,
        /// Batches that run side by side in this process; as many as there are slots
        /// unless said
        #[arg(long, value_name = "N")]
        processors: Option<usize>,
        /// End when nothing is due
        #[arg(long)]
        drain: bool,
        /// How long after its death a worker's slots are free again, in milliseconds
        #[arg(long, value_name = "MS")]
        lease: Option<u64>,
        /// Let batches of a kind wait for each other, so that this many run side by side
        #[arg(long, default_value_t = 0, value_name = "N")]
        meet: usize,
        /// How long the market place takes, in milliseconds
        #[arg(long, default_value_t = 20, value_name = "MS")]
        pause: u64,
    },
    /// Show queues, what is left to sync, and the slices that were taken
    Show,
    /// Draw which worker had which slot, and when
    Picture {
        /// The kind of batches: sync or check
        #[arg(default_value = "sync", value_parser = ["sync", "check"])]
        kind: String,
    },
}

/// How many batches to put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batches {
    /// So many.
    Some(u32),
    /// As many as what is not synced needs.
    All,
}

fn batches(text: &str) -> Result<Batches, String> {
    if text == "all" {
        return Ok(Batches::All);
    }
    let number = text.parse().map_err(|_| format!("'{text}' is neither a number nor `all`"))?;
    Ok(Batches::Some(number))
}

impl Batches {
    /// So many batches, of `limit` each, where so much is not synced.
    pub(crate) fn count(self, left: i64, limit: u32) -> u32 {
        match self {
            Batches::Some(count) => count,
            Batches::All => {
                let left = u64::try_from(left).unwrap_or_default();
                u32::try_from(left.div_ceil(u64::from(limit.max(1)))).unwrap_or(u32::MAX)
            }
        }
    }
}

fn offer(text: &str) -> Result<(i64, i64), String> {
    text.split_once('=')
        .and_then(|(ean, price)| Some((ean.parse().ok()?, price.parse().ok()?)))
        .ok_or_else(|| format!("'{text}' is not an offer: write it like 4006381333931=1999"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn all_are_as_many_batches_as_it_takes() {
        let all = batches("all").unwrap();
        assert_eq!([0, 1, 100, 101, 1000].map(|left| all.count(left, 100)), [0, 1, 1, 2, 10]);
        assert_eq!(batches("7").unwrap().count(1000, 100), 7);
        assert!(batches("some").unwrap_err().contains("neither a number nor `all`"));
    }
}
