//! The command line: what can be typed.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};

use crate::crew::QUEUES;
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
        /// The authorities whose certificates a webhook may have, as PEM (default: the
        /// public ones)
        #[arg(long, value_name = "PATH", requires = "webhook")]
        webhook_ca: Option<PathBuf>,
        /// Serve this queue alone; may be said several times
        #[arg(long = "queue", value_name = "QUEUE", value_parser = QUEUES)]
        queues: Vec<String>,
        /// How many tasks run side by side; QUEUE=N gives a queue its own
        #[arg(long, value_name = "N|QUEUE=N", value_delimiter = ',', default_value = "1")]
        processors: Vec<Processors>,
        /// End after so long, as `90s` or `4m`, so that the next cron entry finds room
        #[arg(long, value_name = "TIME", value_parser = span)]
        budget: Option<Duration>,
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
    /// Look at failures by what went wrong, and decide about them
    Review {
        /// Decide about this group alone, by its mark in the list
        #[arg(value_name = "MARK")]
        group: Option<String>,
        /// Let its tasks run again
        #[arg(long, requires = "group", conflicts_with = "discard")]
        retry: bool,
        /// Delete its tasks
        #[arg(long, requires = "group")]
        discard: bool,
        /// Ask about each group: r retries, d discards, Enter goes on
        #[arg(long, conflicts_with_all = ["retry", "discard"])]
        ask: bool,
    },
}

/// How many processors, and for which queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Processors {
    /// None: for all that have none of their own.
    pub(crate) queue: Option<String>,
    pub(crate) count: usize,
}

impl FromStr for Processors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (queue, count) = match text.split_once('=') {
            Some((queue, count)) => (Some(queue.to_owned()), count),
            None => (None, text),
        };
        if let Some(queue) = queue.as_deref().filter(|queue| !QUEUES.contains(queue)) {
            return Err(format!("there is no queue '{queue}', only {}", QUEUES.join(", ")));
        }
        match count.parse() {
            Ok(count @ 1..=1_000) => Ok(Processors { queue, count }),
            _ => Err(format!("'{count}' is not a number from 1 to 1000")),
        }
    }
}

/// `90s`, `4m`, `500ms`.
fn span(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| format!("'{text}' is no time, as 90s or 4m"))?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("'{text}' has no unit: ms, s, m or h")),
    };
    number
        .checked_mul(millis)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("'{text}' is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn times_and_processors_are_read() {
        assert_eq!(span("4m"), Ok(Duration::from_secs(240)));
        assert_eq!(span("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "4", "m", "4 m", "-1s", "99999999999999999999s"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        let read = |text: &str| text.parse::<Processors>();
        assert_eq!(read("3"), Ok(Processors { queue: None, count: 3 }));
        let own = Processors { queue: Some("NEW_ITEM".to_owned()), count: 2 };
        assert_eq!(read("NEW_ITEM=2"), Ok(own));
        for bad in ["0", "x", "NEW=2", "NEW_ITEM="] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
