//! What was typed after `audit`.

use clap::Args;

const AUDIT: &str = "\
Examples:
  gristmill audit
  gristmill audit --limit 1000 --json | jq '.[] | select(.actor == \"shop\")'

What was done over HTTP, from the dashboard and by this program is there, for 90 days unless
gristmill.yaml says otherwise. With --json: [{\"id\",\"at\",\"action\",\"via\",\"actor\",\"by\",\"target\",
\"queue\",\"moved\",\"note\"}]; actor is the name of the token that was shown, by is who they say they
are.";

/// `audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT)]
pub(crate) struct AuditArgs {
    /// At most so many lines
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) limit: u32,
}
