//! How far the tasks of one claim are: a JSON object by task, beside their lease. Read
//! leniently: it is for people to look at, and what cannot be read is not shown.

use std::collections::BTreeMap;

use gristmill_core::{Progress, ProgressView, Result, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Instant, text};

/// How far one task is, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressText<T = i64> {
    done: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    message: String,
    at: T,
}

impl ProgressText {
    /// As it is stored, with its instant in microseconds.
    #[must_use]
    pub fn new(view: &ProgressView) -> Self {
        let (progress, at) = (&view.progress, view.at.as_micros());
        let message = progress.message().to_owned();
        ProgressText { done: progress.done(), total: progress.total(), message, at }
    }
}

impl<T: Instant> ProgressText<T> {
    /// How far it is.
    ///
    /// # Errors
    /// Corrupt, when its instant is none.
    pub fn into_view(self) -> Result<ProgressView> {
        let progress = Progress::new(self.done, self.total, &self.message);
        Ok(ProgressView { progress, at: self.at.instant()? })
    }
}

/// How far one task is; nothing when that cannot be read.
#[must_use]
pub fn progress<T: Instant>(stored: &str) -> Option<ProgressView> {
    serde_json::from_str::<ProgressText<T>>(stored).ok()?.into_view().ok()
}

/// How far the tasks of a claim are, by task, where that can be read; and whether all
/// of it can.
#[must_use]
pub fn progress_by_task(stored: &str) -> (BTreeMap<i64, ProgressView>, bool) {
    let mut all = BTreeMap::new();
    let Ok(said) = serde_json::from_str::<BTreeMap<String, Value>>(stored) else {
        return (all, false);
    };
    let entries = said.len();
    for (id, value) in said {
        let view = serde_json::from_value::<ProgressText>(value).ok();
        if let (Ok(id), Some(Ok(view))) = (id.parse(), view.map(ProgressText::into_view)) {
            all.insert(id, view);
        }
    }
    let whole = all.len() == entries;
    (all, whole)
}

/// How far the tasks of a claim are, as it is stored.
///
/// # Errors
/// Invalid, when it cannot be said in JSON.
pub fn progress_text(all: &BTreeMap<i64, ProgressView>) -> Result<String> {
    let by_task = all.iter().map(|(id, view)| (TaskId(*id).to_string(), ProgressText::new(view)));
    text(&by_task.collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_stored_in_these_words() -> Result<()> {
        let stored =
            r#"{"12":{"done":3,"total":40,"message":"rows","at":7},"9":{"done":0,"at":8}}"#;
        let (all, whole) = progress_by_task(stored);
        assert!(whole);
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [9, 12]);
        assert_eq!(progress_text(&all)?, stored);
        let words = r#"{"done":3,"total":40,"message":"rows","at":"1970-01-01T00:00:00.000007Z"}"#;
        assert_eq!(progress::<String>(words).as_ref(), all.get(&12));
        Ok(())
    }

    #[test]
    fn what_cannot_be_read_leaves_the_rest() {
        let stored =
            r#"{"1":{"done":3,"at":7},"x":{"done":0,"at":8},"2":{"done":-1,"at":8},"3":7}"#;
        let (all, whole) = progress_by_task(stored);
        assert_eq!((all.keys().copied().collect::<Vec<_>>(), whole), (vec![1], false));
        for stored in ["[]", "7", "no json", ""] {
            assert_eq!(progress_by_task(stored), (BTreeMap::new(), false), "{stored}");
            assert_eq!(progress::<i64>(stored), None, "{stored}");
        }
    }
}
