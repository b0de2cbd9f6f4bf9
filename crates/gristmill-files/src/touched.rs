//! Tasks whose files changed since the checkpoint: each, as long as they are
//! few, and otherwise only that they are many.

use std::collections::BTreeSet;

use gristmill_core::TaskId;

/// Up to this many are synced one by one.
const FEW: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Touched {
    ids: BTreeSet<TaskId>,
    many: bool,
}

impl Touched {
    pub(crate) fn insert(&mut self, id: TaskId) {
        if !self.many {
            self.ids.insert(id);
            if self.ids.len() > FEW {
                self.set_many();
            }
        }
    }

    /// More than is known here.
    pub(crate) fn set_many(&mut self) {
        self.ids.clear();
        self.many = true;
    }

    /// The tasks, unless they are many.
    pub(crate) fn few(&self) -> Option<&BTreeSet<TaskId>> {
        (!self.many).then_some(&self.ids)
    }
}
