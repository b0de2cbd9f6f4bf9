//! What was typed after `claim`, `settle`, `done`, `fail` and `extend`: the verbs of a
//! worker that is a shell script.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

const CLAIM: &str = "\
Examples:
  gristmill claim emails
  gristmill claim urgent emails --wait 30s --lease 5m --json
  gristmill claim resize --payload photo.jpg

A worker in a shell:
  while next=$(gristmill claim emails --shell --wait 1h); do
    eval \"$next\"
    if printf %s \"$GRISTMILL_TASK_PAYLOAD\" | ./send-mail; then gristmill done
    else gristmill settle --error \"send-mail ended with $?\"; fi
  done

Whoever claims settles within the lease, or prolongs it with 'gristmill extend'; otherwise the task
comes back, and its attempt counts. The queues are looked at in the order given. The exit code is 3
when nothing is due.

With --json: {\"token\",\"queue\",\"lease_ms\",\"tasks\":[{\"id\",\"payload\",\"encoding\",\"key\",\"group\",
\"source\",\"priority\",\"attempt\",\"claims\",\"created_at\",\"run_at\",\"headers\",\"concurrent\",\"slot\"}]}.
With --shell: GRISTMILL_TOKEN, GRISTMILL_LEASE, GRISTMILL_TASK_ID, _QUEUE, _KEY, _ATTEMPT,
_CONCURRENT, _SLOT, _GROUP, _SOURCE, _ENCODING and _PAYLOAD, quoted for eval; settle, done, fail and
extend read the first three.";

const SETTLE: &str = "\
Examples:
  gristmill settle 42 --token $token --done
  gristmill settle 42 --token $token --error 'no route to host'    the queue decides: again, or failed
  gristmill settle 42 --token $token --retry 10m --reason 'host is down'
  gristmill settle 42 --token $token --fail 'no such user'         failed for good
  gristmill settle 42 --token $token --release --after 1m          the attempt does not count

What is not said is read from GRISTMILL_TASK_ID and GRISTMILL_TOKEN, as 'claim --shell' sets them.
The exit code is 3 when the lease was lost: somebody else has the task, or had it.

With --json, one line a task: {\"id\",\"answer\",\"became\",\"run_at\"}; answer is one of recorded,
already_recorded, gone, lease_lost, and became one of done, pending, failed, cancelled.";

const DONE: &str = "\
Examples:
  gristmill done 42 --token $token
  gristmill done                        the task of GRISTMILL_TASK_ID and GRISTMILL_TOKEN
  ./sum numbers | gristmill done --result -      for 'gristmill put --wait'";

const FAIL: &str = "\
Examples:
  gristmill fail 42 --token $token --error 'no such user'
  gristmill fail --error 'no such user'

The task failed for good, whatever attempts it has left: 'gristmill failed' lists it. An error that
may pass is 'gristmill settle --error TEXT'.";

const EXTEND: &str = "\
Examples:
  gristmill extend --token $token --lease 5m
  while sleep 20; do gristmill extend || kill $$; done &      beside the handler

Everything that was claimed under the token keeps its lease, for so long from now. The exit code is 3
when the lease was lost: stop, somebody else may have the task.

With --json: {\"answer\":\"extended|lease_lost\",\"lease_ms\",\"cancelled\":[ID…],\"lost\":[ID…]}. What is
cancelled is to be stopped and settled with --cancelled; what is lost is gone.";

/// `claim`.
#[derive(Debug, Args)]
#[command(after_help = CLAIM)]
pub(crate) struct ClaimArgs {
    /// From these queues, the first that has something
    #[arg(required = true, value_name = "QUEUE")]
    pub(crate) queues: Vec<String>,

    /// At most this many tasks, all of one queue
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) max: usize,

    /// The lease's length [default: the queue's]
    #[arg(long, value_name = "DURATION")]
    pub(crate) lease: Option<String>,

    /// Wait so long for something to do
    #[arg(long, value_name = "DURATION")]
    pub(crate) wait: Option<String>,

    /// Only tasks of this source
    #[arg(long, value_name = "S")]
    pub(crate) source: Option<String>,

    /// Who claims, as 'show' tells it [default: a random name]
    #[arg(long, value_name = "NAME")]
    pub(crate) worker: Option<String>,

    /// Answer in lines for a shell's eval; one task
    #[arg(long, conflicts_with = "json")]
    pub(crate) shell: bool,

    /// Write the payload to this file; one task
    #[arg(long, value_name = "FILE")]
    pub(crate) payload: Option<PathBuf>,
}

/// Which tasks, and whose.
#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// These tasks [default: GRISTMILL_TASK_ID]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// The claim's token
    #[arg(long, value_name = "T", env = "GRISTMILL_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

/// `settle`.
#[derive(Debug, Args)]
#[command(after_help = SETTLE)]
#[command(group = ArgGroup::new("outcome").required(true))]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    /// It succeeded
    #[arg(long, group = "outcome")]
    pub(crate) done: bool,

    /// It went wrong: the queue decides whether it runs again
    #[arg(long, value_name = "TEXT", group = "outcome", allow_hyphen_values = true)]
    pub(crate) error: Option<String>,

    /// It can never succeed
    #[arg(long, value_name = "TEXT", group = "outcome", allow_hyphen_values = true)]
    pub(crate) fail: Option<String>,

    /// Run it again after this time; the attempt counts
    #[arg(long, value_name = "DURATION", group = "outcome")]
    pub(crate) retry: Option<String>,

    /// Give it back; the attempt does not count
    #[arg(long, group = "outcome")]
    pub(crate) release: bool,

    /// It was stopped because an operator cancelled it
    #[arg(long, group = "outcome")]
    pub(crate) cancelled: bool,

    /// What it came to, for who waits; '-' reads it from standard input
    #[arg(long, value_name = "TEXT", requires = "done", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,

    /// Not before this time has passed [default: at once]
    #[arg(long, value_name = "DURATION", requires = "release")]
    pub(crate) after: Option<String>,

    /// Why it is to run again
    #[arg(long, value_name = "TEXT", requires = "retry", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
}

/// `done`.
#[derive(Debug, Args)]
#[command(after_help = DONE)]
pub(crate) struct DoneArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    /// What it came to, for who waits; '-' reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
}

/// `fail`.
#[derive(Debug, Args)]
#[command(after_help = FAIL)]
pub(crate) struct FailArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    /// Why
    #[arg(long, value_name = "TEXT", required = true, allow_hyphen_values = true)]
    pub(crate) error: String,
}

/// `extend`.
#[derive(Debug, Args)]
#[command(after_help = EXTEND)]
pub(crate) struct ExtendArgs {
    /// The claim's token
    #[arg(long, value_name = "T", env = "GRISTMILL_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// How long the lease lasts from now
    #[arg(long, value_name = "DURATION", env = "GRISTMILL_LEASE", default_value = "60s")]
    pub(crate) lease: String,

    /// How far this task of the claim is
    #[arg(long, value_name = "ID", requires = "progress")]
    pub(crate) task: Option<String>,

    /// '12/100 rows', '40% fetched', '12 rows', or words alone
    #[arg(long, value_name = "TEXT", requires = "task")]
    pub(crate) progress: Option<String>,
}
