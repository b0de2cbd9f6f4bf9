//! What a copy leaves on the queues it pauses: the name under which it paused
//! them, in words that can be read back.
//!
//! A store keeps who paused a queue and nothing else about it, so this is where
//! a later copy, and a doctor, learn that the queue's tasks went elsewhere.

use std::fmt;

use crate::{Queue, TaskId};

/// Who a copy says it is where it pauses something.
pub const COPIER: &str = "gristmill copy";

const INTO: &str = "gristmill copy into it";

/// Why a copy paused a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyPause {
    /// The queue was copied from: its tasks run elsewhere.
    Away {
        /// What went; nothing while it is not certain that all of it did.
        whole: Option<WentAway>,
        /// Who had paused it before the copy.
        after: Option<String>,
    },
    /// The queue is being copied to: its tasks are still coming.
    Arriving,
}

/// What went to another store, and is kept here all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WentAway {
    /// How many tasks.
    pub tasks: u64,
    /// The highest number among them.
    pub last: TaskId,
}

impl CopyPause {
    /// Reads it from a queue; nothing when the queue is not paused by a copy.
    #[must_use]
    pub fn of(queue: &Queue) -> Option<Self> {
        queue.paused_by.as_deref().filter(|_| queue.paused).and_then(Self::read)
    }

    /// Reads the name under which something was paused.
    #[must_use]
    pub fn read(by: &str) -> Option<Self> {
        if by == INTO {
            return Some(CopyPause::Arriving);
        }
        let rest = by.strip_prefix(COPIER)?;
        let (what, after) = match rest.split_once(", after ") {
            Some((what, after)) => (what, Some(after.to_owned())),
            None => (rest, None),
        };
        if what.is_empty() {
            return Some(CopyPause::Away { whole: None, after });
        }
        let (tasks, last) = what.strip_prefix(" of ")?.split_once(" tasks up to ")?;
        let whole = WentAway { tasks: tasks.parse().ok()?, last: TaskId(last.parse().ok()?) };
        Some(CopyPause::Away { whole: Some(whole), after })
    }
}

impl fmt::Display for CopyPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CopyPause::Away { whole, after } = self else { return f.write_str(INTO) };
        f.write_str(COPIER)?;
        if let Some(whole) = whole {
            write!(f, " of {} tasks up to {}", whole.tasks, whole.last)?;
        }
        match after {
            Some(after) => write!(f, ", after {after}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let whole = Some(WentAway { tasks: 5, last: TaskId(123) });
        for (pause, words) in [
            (CopyPause::Arriving, "gristmill copy into it"),
            (CopyPause::Away { whole: None, after: None }, "gristmill copy"),
            (CopyPause::Away { whole, after: None }, "gristmill copy of 5 tasks up to 123"),
            (
                CopyPause::Away { whole, after: Some("ada, after lunch".to_owned()) },
                "gristmill copy of 5 tasks up to 123, after ada, after lunch",
            ),
        ] {
            assert_eq!(pause.to_string(), words);
            assert_eq!(CopyPause::read(words), Some(pause));
        }
        for words in ["ada", "gristmill copycat", "gristmill copy of all tasks up to 1"] {
            assert_eq!(CopyPause::read(words), None, "{words}");
        }
    }
}
