//! How far the tasks of one claim are. It ends with the claim's hold on each, so that
//! no other attempt is ever told of it.

use std::collections::BTreeMap;

use crate::{ProgressView, TaskId};

/// What an entry takes of the store's room besides its message.
const ENTRY: usize = 80;

/// What was last said of each task that says anything.
#[derive(Debug, Default)]
pub(super) struct Reported(BTreeMap<i64, ProgressView>);

impl From<Vec<(TaskId, ProgressView)>> for Reported {
    fn from(all: Vec<(TaskId, ProgressView)>) -> Self {
        Reported(all.into_iter().map(|(id, view)| (id.0, view)).collect())
    }
}

fn size(view: &ProgressView) -> usize {
    ENTRY + view.progress.message().len()
}

impl Reported {
    /// How far this one is.
    pub(super) fn of(&self, id: i64) -> Option<&ProgressView> {
        self.0.get(&id)
    }

    /// Everything that was said, by task.
    pub(super) fn all(&self) -> Vec<(TaskId, ProgressView)> {
        self.0.iter().map(|(id, view)| (TaskId(*id), view.clone())).collect()
    }

    /// How much room it takes.
    pub(super) fn bytes(&self) -> usize {
        self.0.values().map(size).sum()
    }

    /// Remembers it where there is so much room; returns what it takes. Nothing was
    /// said of this one, or it was forgotten.
    pub(super) fn say(&mut self, id: i64, view: ProgressView, room: usize) -> usize {
        let bytes = size(&view);
        if bytes > room {
            return 0;
        }
        self.0.insert(id, view);
        bytes
    }

    /// Forgets what was said of this one; returns what it took.
    pub(super) fn forget(&mut self, id: i64) -> usize {
        self.0.remove(&id).as_ref().map_or(0, size)
    }
}
