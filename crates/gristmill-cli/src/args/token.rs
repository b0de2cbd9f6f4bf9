//! What was typed after `token`.

use clap::{Args, Subcommand};

const CREATE: &str = "\
Examples:
  gristmill token create shop --scope put --queue orders --queue 'mail-*'
  gristmill token create worker-1 --scope work,put --expires 90d
  gristmill token create prometheus --scope read
  gristmill token create ada --scope admin

The token is shown once, alone on standard output; the store keeps only its SHA-256. Callers
send it as 'Authorization: Bearer TOKEN'; clients read GRISTMILL_TOKEN.

  put    putting tasks, also as follow-ups
  work   claiming, extending, settling
  read   looking: tasks, queues, stats, events, metrics
  admin  all of it, and declaring, changing, pausing, retrying, cancelling

As soon as there is a token, HTTP asks everybody for one, also on this machine.
With --json: {\"token\",\"name\",\"state\",\"scopes\",\"queues\",\"created_at\",\"created_by\",\"expires_at\"}";

const LIST: &str = "\
Examples:
  gristmill token list
  gristmill token list --json | jq -r '.[] | select(.state == \"expired\") | .name'

With --json: [{\"name\",\"state\",\"scopes\",\"queues\",\"created_at\",\"created_by\",\"expires_at\"}]; state is
active, expired or unreadable.";

const REVOKE: &str = "\
Example:
  gristmill token revoke worker-1

Services refuse it within a second, also where a claim under it is waiting. What was claimed with
it comes back when the leases end.";

/// `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and show it, once
    #[command(after_help = CREATE)]
    Create(TokenCreateArgs),
    /// List tokens: what each is good for, never what it is
    #[command(after_help = LIST)]
    List,
    /// Take a token back
    #[command(after_help = REVOKE)]
    Revoke(TokenRevokeArgs),
}

/// `token create`.
#[derive(Debug, Args)]
pub(crate) struct TokenCreateArgs {
    /// What it is called: in lists, in the audit log
    pub(crate) name: String,

    /// What it is good for: put, work, read, admin; several with commas
    #[arg(long, value_name = "SCOPES", required = true, value_delimiter = ',')]
    pub(crate) scope: Vec<String>,

    /// For which queues: a name, or the beginning of names like 'shop-*' [default: all]
    #[arg(long, value_name = "QUEUE", value_delimiter = ',')]
    pub(crate) queue: Vec<String>,

    /// For how long, like 12h or 90d [default: until it is revoked]
    #[arg(long, value_name = "DURATION")]
    pub(crate) expires: Option<String>,

    /// Who makes it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// The token's name
    pub(crate) name: String,

    /// Who does it [default: $USER]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}
