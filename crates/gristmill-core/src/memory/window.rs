//! Windows of queues that say `unique_for`: for so long after a put its key's next ones
//! are duplicates, also when its task is gone.
//!
//! They are remembered where callers' ids are, under names that no caller can give: an
//! id holds no NUL, and these begin with one. So they take their part of the store's
//! room, are swept and written down like ids, and a process that does not know them
//! keeps them.

use super::state::{Remembered, State};
use crate::policy::duplicate::window_end;
use crate::{Settings, TaskId, Timestamp};

/// The name under which a key's window is remembered.
fn name(key: &str) -> String {
    format!("\0{key}")
}

/// How long at most, from now on, what is remembered under this name is known.
pub(super) fn longest(name: &str, settings: &Settings, now: Timestamp) -> Timestamp {
    if name.starts_with('\0') {
        now.after(settings.unique_for.unwrap_or_default())
    } else {
        now.after(settings.id_window)
    }
}

impl State {
    /// The task whose put keeps others of its key out for now.
    pub(super) fn window_of(&self, number: u32, key: &str, now: Timestamp) -> Option<TaskId> {
        let queue = self.queues.get(&number)?;
        queue.queue.settings.unique_for?;
        let known = queue.ids.get(&name(key)).copied();
        known.filter(|(_, _, until)| *until > now).map(|(id, _, _)| id)
    }

    /// A put begins its key's window, where the queue has them and no later put's goes
    /// on for longer. Returns its name and what was remembered before.
    pub(super) fn open_window(
        &mut self,
        number: u32,
        key: &str,
        (id, put_at): (TaskId, Timestamp),
        now: Timestamp,
    ) -> Option<(String, Option<Remembered>)> {
        let queue = self.queues.get(&number)?;
        let until = window_end(put_at, &queue.queue.settings, now)?;
        let name = name(key);
        if queue.ids.get(&name).is_some_and(|(_, _, later)| *later > until) {
            return None;
        }
        let before = self.set_caller_id(number, name.clone(), Some((id, [0; 16], until)));
        self.note(|changes| changes.caller_ids.push((number, name.clone())));
        Some((name, before))
    }

    /// A task failed or was taken away: its window ends. One of a later put of the key
    /// stays.
    pub(super) fn end_window(&mut self, id: TaskId) {
        let Some(row) = self.rows.get(&id.0) else {
            return;
        };
        let (number, Some(key)) = (row.number, &row.task.key) else {
            return;
        };
        let Some(queue) = self.queues.get(&number) else {
            return;
        };
        if queue.queue.settings.unique_for.is_none() {
            return;
        }
        let name = name(key);
        if queue.ids.get(&name).is_some_and(|(of, _, _)| *of == id) {
            self.set_caller_id(number, name.clone(), None);
            self.note(|changes| changes.caller_ids.push((number, name)));
        }
    }
}
