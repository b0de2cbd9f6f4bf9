//! What was typed after `put`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  gristmill put emails '{\"to\":\"ada@example.org\"}'
  gristmill put emails '{\"to\":\"ada@example.org\"}' --key ada --delay 5m
  gristmill put sums '[1,2]' --wait 30s          prints what its handler returns
  cat photo.jpg | gristmill put resize - --encoding raw --source upload
  gristmill put emails '{\"to\":\"ada@example.org\"}' --at 'tomorrow 9:00'
  find . -name '*.jpg' | gristmill put resize --lines     each line as it stands
  gristmill put emails --from emails.ndjson               one JSON payload a line
  gristmill put emails --from - --envelope < all.ndjson
        one object a line: {\"payload\":…,\"key\":…,\"delay\":\"5s\",\"at\":…,\"priority\":0,
        \"group\":…,\"source\":…,\"id\":…,\"headers\":{…},\"timeout\":\"30s\",\"max_attempts\":3,
        \"backoff\":{\"base\":\"1s\",\"cap\":\"1m\",\"jitter\":true}}

With --json, one line per task:
  {\"outcome\":\"enqueued|duplicate|replaced|refused\",\"id\":…,\"reason\":…}";

/// `put`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PutArgs {
    /// The queue
    pub(crate) queue: String,

    /// The task's data; '-' reads it from standard input
    #[arg(allow_negative_numbers = true, conflicts_with = "from")]
    pub(crate) payload: Option<String>,

    /// What the task is about: at most one waiting task a key
    #[arg(long, value_name = "K", conflicts_with_all = ["from", "lines"], allow_hyphen_values = true)]
    pub(crate) key: Option<String>,

    /// Not before this much time has passed, like 5s or 1h30m
    #[arg(long, value_name = "DURATION", conflicts_with = "at", allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,

    /// Not before this time: 17:30, 'tomorrow 9:00', '2026-11-15 08:30' (in your zone) or
    /// 2026-11-15T08:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// Lower runs first
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0)]
    pub(crate) priority: i16,

    /// What it is counted with while it runs
    #[arg(long, value_name = "G")]
    pub(crate) group: Option<String>,

    /// Who produced it
    #[arg(long, value_name = "S")]
    pub(crate) source: Option<String>,

    /// Your own id: repeating the put with it puts nothing twice
    #[arg(long, value_name = "ID", conflicts_with_all = ["from", "lines"])]
    pub(crate) id: Option<String>,

    /// How long its handler may take, instead of the queue's timeout
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,

    /// Attempts before it fails, instead of the queue's; or 'unlimited'
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_attempts: Option<String>,

    /// The wait after an error, instead of the queue's, like base=1s,cap=1m,jitter=no
    #[arg(long, value_name = "PARTS", allow_hyphen_values = true)]
    pub(crate) backoff: Option<String>,

    /// Wait for the task's end, for 15m unless said, print its result, and end with its
    /// handler's status: 75 when the time is up
    #[arg(long, value_name = "LIMIT", conflicts_with_all = ["from", "lines"], num_args = 0..=1,
          default_missing_value = "15m")]
    pub(crate) wait: Option<String>,

    /// Declare the queue if nobody has; begins the store as well
    #[arg(long)]
    pub(crate) create: bool,

    /// Many tasks, one JSON value a line; '-' reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// Each line is an object with the payload and its options
    #[arg(long, requires = "from")]
    pub(crate) envelope: bool,

    /// Each line is a payload as it stands, of --from or of standard input
    #[arg(long, conflicts_with_all = ["envelope", "encoding"])]
    pub(crate) lines: bool,

    /// Take an empty payload for what is meant: the pipe before may have failed
    #[arg(long, conflicts_with_all = ["from", "lines"])]
    pub(crate) allow_empty: bool,

    /// How the payload is to be read: json, msgpack or raw [default: json if it is, else raw];
    /// raw beside --from is --lines
    #[arg(long, value_name = "E", conflicts_with = "envelope")]
    pub(crate) encoding: Option<String>,
}
