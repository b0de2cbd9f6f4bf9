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
        #[arg(long, value_enum, default_value_t = By::Slot)]
        by: By,
        /// Batches of offers to sync
        #[arg(long, default_value_t = 0)]
        sync: u32,
        /// Offers in a batch
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Batches of processes to look at
        #[arg(long, default_value_t = 0)]
        check: u32,
        /// Processes in a batch
        #[arg(long, default_value_t = 50)]
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
        #[arg(long, value_enum, default_value_t = By::Slot)]
        by: By,
        /// Batches that run side by side
        #[arg(long, default_value_t = 3)]
        processors: usize,
        /// End when nothing is due
        #[arg(long)]
        drain: bool,
        /// Let batches wait for each other, so that this many run side by side
        #[arg(long, default_value_t = 0, value_name = "N")]
        meet: usize,
        /// How long the market place takes, in milliseconds
        #[arg(long, default_value_t = 20, value_name = "MS")]
        pause: u64,
    },
    /// Show queues and the slices that were taken
    Show,
}

fn offer(text: &str) -> Result<(i64, i64), String> {
    text.split_once('=')
        .and_then(|(ean, price)| Some((ean.parse().ok()?, price.parse().ok()?)))
        .ok_or_else(|| format!("'{text}' is not an offer: write it like 4006381333931=1999"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }
}
