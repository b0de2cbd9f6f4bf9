//! What was typed after `bench`.

use std::path::PathBuf;

use clap::Args;

const BENCH: &str = "\
Examples:
  gristmill bench
  gristmill bench --tasks 20000 --rounds 3
  gristmill bench --folder /srv/data --json
  gristmill bench --store postgres://localhost/shop
  gristmill bench --store files://spool
  gristmill bench --store memory: --only start_memory

Each rate stands beside the bare limit: hand-written statements on the same SQLite build or the same
PostgreSQL server, or hand-written files, in alternating rounds of the same run, durable on both
sides. Which store is measured follows from --store. With --json:
[{\"name\",\"rate\",\"bare\",\"ratio\",\"durable\"}], and of times, whose rate is how often they fit into a
second, also \"p50_us\", \"p99_us\", \"bare_p50_us\" and \"bare_p99_us\". What work costs a PostgreSQL
server beside time is {\"name\",\"unit\",\"cost\",\"bare\",\"ratio\"}. Your store is not touched: files
are made in the folder, or a schema and a table in the database, and deleted.";

/// `bench`.
#[derive(Debug, Args)]
#[command(after_help = BENCH)]
pub(crate) struct BenchArgs {
    /// Tasks in a bulk round
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) tasks: u32,

    /// Alternating rounds; the ratio is their median
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) rounds: u32,

    /// Where the files are made: the disk that is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Only these measurements, by the name of their row
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Put so many tasks as a measurement's other process, and say when
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) produce: Option<u32>,

    /// Put so many tasks when told to, for a measurement in another process
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) put_when_told: Option<u32>,
}
