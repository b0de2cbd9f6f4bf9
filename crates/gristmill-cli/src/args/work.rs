//! What was typed after `work` and `up`.

use std::path::PathBuf;

use clap::Args;

const WORK: &str = "\
Examples:
  gristmill work emails --exec './send-mail'
  gristmill work emails reports --exec './handle' --processors 4
  gristmill work --exec 'cat > /dev/null' --drain      all queues, then end

CMD runs by sh -c with the payload on standard input and GRISTMILL_TASK_ID, GRISTMILL_TASK_QUEUE,
_KEY, _ATTEMPT, _CONCURRENT, _SLOT, _GROUP, _SOURCE and _ENCODING in the environment.
Its exit code settles the task: 0 done, 75 released (again after the queue's backoff, the attempt
does not count), 65 failed for good, 126 and 127 (the command cannot be run) give it back and end
the work on its queue, anything else or a signal is an error (retried). The last 4 KiB of its
standard error are the error text.

With --stream CMD is started once and stays. It first writes {\"gristmill\":1,\"ready\":true}, then
reads a line of JSON for each task, with its id and payload, and answers each with one:
{\"id\":…,\"outcome\":\"done\"} (or error, retry, fail, release). It ends when its standard input does.

With --drain the exit code is 3 when tasks failed for good in it: '|| notify-somebody' for cron.";

const UP: &str = "\
Examples:
  gristmill up
  gristmill up --config production.yaml --store sqlite:///srv/app.db

HTTP is served at 127.0.0.1:4747, or where 'listen:' of the file or GRISTMILL_LISTEN says ('off'
serves none); its documents are at /docs.

Ctrl-C stops it: what runs may finish within 30 seconds; a second Ctrl-C stops at once.";

const SERVE: &str = "\
Examples:
  gristmill serve
  gristmill --store files://spool serve
  GRISTMILL_LISTEN=127.0.0.1:5000 gristmill serve --config production.yaml

Everything is as in 'gristmill up', but no handler runs here: tasks wait for workers that claim
over HTTP, or for 'gristmill work'. Without a gristmill.yaml the store is served as it stands.";

/// `work`.
#[derive(Debug, Args)]
#[command(after_help = WORK)]
pub(crate) struct WorkArgs {
    /// The queues [default: all]
    #[arg(value_name = "QUEUE")]
    pub(crate) queues: Vec<String>,

    /// The handler's command
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: String,

    /// CMD stays and is given one task after the other, each as a line of JSON
    #[arg(long)]
    pub(crate) stream: bool,

    /// End when nothing is due and nothing runs
    #[arg(long)]
    pub(crate) drain: bool,

    /// How many tasks run side by side
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) processors: usize,

    /// Most tasks in one claim [default: the queue's batch_size]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<usize>,

    /// The lease's length [default: the queue's]
    #[arg(long, value_name = "DURATION")]
    pub(crate) lease: Option<String>,

    /// Only tasks of this source
    #[arg(long, value_name = "S")]
    pub(crate) source: Option<String>,

    /// Tell the handler the store's URL in GRISTMILL_STORE; it may hold a password
    #[arg(long)]
    pub(crate) with_store: bool,

    /// Serve /metrics, /livez and /readyz at this address of this machine, like 127.0.0.1:9100
    #[arg(long, value_name = "ADDR", env = "GRISTMILL_METRICS")]
    pub(crate) metrics: Option<String>,
}

/// `serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE)]
pub(crate) struct ServeArgs {
    /// The configuration [default: gristmill.yaml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// `up`.
#[derive(Debug, Args)]
#[command(after_help = UP)]
pub(crate) struct UpArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "gristmill.yaml")]
    pub(crate) config: PathBuf,
}
