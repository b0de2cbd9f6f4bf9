//! Windows of queues that say `unique_for`: for so long after a put its key's next ones
//! are duplicates, also when its task is gone.

use gristmill_core::policy::duplicate::window_end;
use gristmill_core::{Queue, Result, TaskId, Timestamp};

use crate::row::Row;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// The task whose put keeps others of its key out for now.
    pub(crate) fn window_of(&self, queue: &Queue, key: &str) -> Result<Option<TaskId>> {
        if queue.settings.unique_for.is_none() {
            return Ok(None);
        }
        self.db.one(
            Sql::WindowOf,
            bind!(WindowOf { queue: queue.number, key, now: self.now.as_micros() }),
            |row| row.get(at!(WindowOf.task)).map(TaskId),
        )
    }

    /// A put begins its key's window, where the queue has them.
    pub(crate) fn open_window(
        &mut self,
        queue: &Queue,
        key: Option<&str>,
        (id, put_at): (TaskId, Timestamp),
    ) -> Result<()> {
        let until = window_end(put_at, &queue.settings, self.now);
        let Some((key, until)) = key.zip(until) else { return Ok(()) };
        let until = until.as_micros();
        self.db.run(
            Sql::WindowOpen,
            bind!(WindowOpen { queue: queue.number, key, task: id.0, until }),
        )?;
        Ok(())
    }

    /// A task failed or was taken away: its window ends. One of a later put of the key
    /// stays.
    pub(crate) fn end_window(&mut self, queue: &Queue, row: &Row) -> Result<()> {
        if let (Some(_), Some(key)) = (queue.settings.unique_for, &row.key) {
            self.db
                .run(Sql::WindowEnd, bind!(WindowEnd { queue: queue.number, key, task: row.id }))?;
        }
        Ok(())
    }

    /// No window lasts longer than its queue says.
    pub(crate) fn clamp_windows(&mut self, queue: &Queue) -> Result<()> {
        let longest = self.now.after(queue.settings.unique_for.unwrap_or_default()).as_micros();
        self.db.run(Sql::WindowClamp, bind!(WindowClamp { longest, queue: queue.number }))?;
        Ok(())
    }
}
