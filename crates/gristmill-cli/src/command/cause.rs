//! Which failures are meant: by their error, and by when they failed.

use std::time::Duration;

use gristmill::{Task, Timestamp, error_shape};

use super::text_up_to;
use crate::args::CauseArgs;
use crate::failure::Failure;
use gristmill_contract::duration;

/// What a shape has in place of numbers, ids and quoted words.
const FOLDED: [char; 2] = ['#', '…'];

/// Which failures.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cause {
    error: Option<String>,
    since: Option<Duration>,
}

impl Cause {
    pub(crate) fn meant(args: CauseArgs) -> Result<Self, Failure> {
        let error = args.error.map(|error| text_up_to(4096, "--error", error)).transpose()?;
        let since = args.since.as_deref().map(duration::parse).transpose();
        let since = since.map_err(|why| Failure::usage(format!("--since: {why}")))?;
        Ok(Cause { error, since })
    }

    /// Whether all are meant.
    pub(crate) const fn is_any(&self) -> bool {
        self.error.is_none() && self.since.is_none()
    }

    /// The part of it that stores look for by themselves: a text that stands so in the
    /// error. A shape stands in none.
    pub(crate) fn contained(&self) -> Option<&str> {
        self.error.as_deref().filter(|error| !error.contains(FOLDED))
    }

    /// Whether that part is all of it.
    pub(crate) fn is_only_contained(&self) -> bool {
        self.since.is_none() && (self.error.is_none() || self.contained().is_some())
    }

    /// Whether this failed task is meant.
    pub(crate) fn matches(&self, task: &Task, now: Timestamp) -> bool {
        let error = task.error.as_deref().unwrap_or_default();
        let said = |part: &String| error.contains(&**part) || error_shape(error).contains(&**part);
        let lately =
            |since: Duration| task.failed_at.is_some_and(|failed| failed >= now.before(since));
        self.error.as_ref().is_none_or(said) && self.since.is_none_or(lately)
    }
}
