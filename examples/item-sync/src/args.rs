//! The command line: what can be typed.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};

use crate::notice::Webhook;

/// Syncs market items from JSON files, and does what follows from their prices.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// The SQLite file, or the PostgreSQL database (postgres://...), that holds
    /// items and tasks
    #[arg(long, global = true, value_name = "PATH|URL", default_value = "items.db")]
    #[arg(env = "ITEM_SYNC_DB", hide_env_values = true)]
    pub(crate) db: String,
    /// Try a task up to five times, instead of leaving its first failure to a
    /// person
    #[arg(long, global = true, env = "ITEM_SYNC_RETRIES", value_parser = FalseyValueParser::new())]
    pub(crate) retries: bool,
    /// Show what happens on standard error
    #[arg(long, global = true)]
    pub(crate) debug: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take in files of items, and put a task for each new item and price
    Sync {
        /// JSON arrays of items; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Items in one transaction
        #[arg(long, value_name = "N", default_value_t = 500)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
        chunk: u16,
    },
    /// Work off tasks, until Ctrl-C
    Work {
        /// End when nothing is due, as a cron entry wants it
        #[arg(long)]
        drain: bool,
        /// The file that tells of new items
        #[arg(long, value_name = "PATH", default_value = "new-items.log")]
        log: PathBuf,
        /// Tell of new items by a POST to this URL instead
        #[arg(long, value_name = "URL", conflicts_with = "log")]
        webhook: Option<Webhook>,
        /// Seconds after which a killed worker's tasks come back (default: the
        /// queue's)
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
        lease: Option<u32>,
    },
    /// Delete an item, its prices and its tasks
    Delete {
        /// The item's id
        item: i64,
    },
    /// Show queues and items
    Show,
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
