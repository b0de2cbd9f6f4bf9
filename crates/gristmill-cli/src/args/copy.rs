//! `copy` as it is typed.

use clap::Args;

use super::TypedUrl;

pub(crate) const EXAMPLES: &str = "\
Examples:
  gristmill copy --from sqlite://gristmill.db --to postgres://localhost/shop
  gristmill copy --from sqlite://a.db --to sqlite://b.db --wait 10m --json

The source is paused and stays so, with its tasks: resumed, it would run them
twice. A copy that was ended midway is repeated with the same words.";

/// `copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// The store to copy from
    #[arg(long, value_name = "URL")]
    pub(crate) from: TypedUrl,

    /// The store to copy to; made if it is a file that is not there
    #[arg(long, value_name = "URL")]
    pub(crate) to: TypedUrl,

    /// How long to wait for tasks that are processing [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<String>,
}
