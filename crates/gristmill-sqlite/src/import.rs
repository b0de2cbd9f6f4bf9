//! Importing tasks of another store.

use std::sync::Arc;

use gristmill_core::import::MARK_KEPT;
use gristmill_core::policy::duplicate::Places;
use gristmill_core::{
    Import, ImportAnswer, ImportTask, PutAnswer, Queue, Result, State, StoreError, Task, TaskId,
    Timestamp, Unique,
};

use crate::moves::Entry;
use crate::row::{Row, encoding_number};
use crate::sql::{Sql, bind};
use crate::write::Write;
use crate::{checkpoint, checksum, codec};

impl Write<'_, '_> {
    /// Takes in tasks of another store; one answer each.
    pub(crate) fn import(&mut self, import: &Import) -> Result<Vec<ImportAnswer>> {
        if import.tasks.len() > self.limits.put_tasks {
            return Err(StoreError::invalid(format!(
                "{} tasks in one import and {} are allowed",
                import.tasks.len(),
                self.limits.put_tasks
            )));
        }
        let queue = self.queue(&import.queue)?;
        import.tasks.iter().map(|task| self.import_one(&queue, task)).collect()
    }

    fn import_one(&mut self, queue: &Arc<Queue>, imported: &ImportTask) -> Result<ImportAnswer> {
        let task = match imported.admitted(self.limits) {
            Ok(task) => task,
            Err(refusal) => return Ok(ImportAnswer::Refused(refusal)),
        };
        let digest = task.payload.digest();
        match self.remembered(queue, &imported.mark, &digest)? {
            Some(PutAnswer::Refused(why)) => return Ok(ImportAnswer::Refused(why)),
            Some(answer) => {
                let id = answer.id().unwrap_or(TaskId(0));
                return Ok(ImportAnswer::Already { id });
            }
            None => {}
        }
        if let Some(refusal) = self.subject_fault(queue, task.key.as_deref())? {
            return Ok(ImportAnswer::Refused(refusal));
        }
        let places = match task.key.as_deref() {
            Some(key) => self.places(queue, key)?,
            None => Places::default(),
        };
        if let Some(id) = imported.kept_out_by(places) {
            return Ok(ImportAnswer::Duplicate { id });
        }
        let id = self.next_id()?;
        let in_flight = imported.takes_flight();
        if let Some(behind) = places.waiting.filter(|_| in_flight) {
            self.block_behind(queue, behind)?;
        }
        let pending = task.state == State::Pending;
        let blocked = pending && !in_flight && places.in_flight.is_some();
        self.insert_imported(queue, id, &task, in_flight, blocked)?;
        let until = self.now.after(MARK_KEPT).as_micros();
        self.db.run(
            Sql::PutIdRemember,
            bind!(PutIdRemember {
                queue: queue.number,
                id: imported.mark,
                task: id.0,
                digest: digest.as_slice(),
                until
            }),
        )?;
        self.delta(queue.number).counters.put += 1;
        if pending {
            // Its window goes on as if it had been put here.
            self.open_window(queue, task.key.as_deref(), (id, task.created_at))?;
        }
        if task.settings.is_wanted() {
            self.want(queue, id)?;
        }
        Ok(ImportAnswer::Imported { id })
    }

    fn insert_imported(
        &mut self,
        queue: &Queue,
        id: TaskId,
        task: &Task,
        in_flight: bool,
        blocked: bool,
    ) -> Result<()> {
        let time = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
        let failed = task.state == State::Failed;
        let place = if failed { 2 } else { i64::from(in_flight) };
        self.db.run(
            Sql::ImportTask,
            bind!(ImportTask {
                id: id.0,
                queue: queue.number,
                key: task.key,
                place,
                blocked,
                unique_active: task.unique == Unique::Active,
                priority: task.priority,
                run_at: task.run_at.as_micros(),
                created_at: task.created_at.as_micros(),
                attempts: task.attempts,
                claims: task.claims,
                expiries: task.expiries,
                encoding: encoding_number(task.payload.encoding),
                grp: task.group,
                source: task.source,
                headers: codec::headers_text(&task.headers)?,
                settings: codec::task_settings_text(&task.settings)?,
                payload: task.payload.bytes.as_ref(),
                prev_run_at: time(task.prev_run_at),
                claimed_at: time(task.claimed_at),
                failed_at: time(task.failed_at),
                error: task.error,
                history: codec::history_text(&task.history)?,
                note: task.note.as_ref().map(|note| &note.text),
                note_by: task.note.as_ref().map(|note| &note.by),
                checksum: checksum::of(task.payload.encoding, &task.payload.bytes),
                checkpoint: checkpoint::blob(task.checkpoint.as_ref())
            }),
        )?;
        if failed {
            let at = task.failed_at.unwrap_or(self.now).as_micros();
            self.db.run(
                Sql::FailedAdd,
                bind!(FailedAdd { id: id.0, queue: queue.number, key: task.key, failed_at: at }),
            )?;
            self.delta(queue.number).failed += 1;
            Ok(())
        } else if blocked {
            self.block(queue, id.0)
        } else {
            let entry = Entry {
                id: id.0,
                priority: task.priority,
                run_at: task.run_at,
                source: task.source.as_deref(),
                group: task.group.as_deref(),
            };
            self.enter(queue, &entry)
        }
    }

    /// A waiting task leaves the claim order: its key's in-flight place is
    /// about to be taken.
    fn block_behind(&mut self, queue: &Queue, waiting: TaskId) -> Result<()> {
        let mut row = Row::load(self.db, waiting.0)?.ok_or_else(|| {
            StoreError::corrupt(format!("task {waiting} holds a place and is not there"))
        })?;
        self.leave(&row)?;
        row.blocked = true;
        row.save(self.db)?;
        self.block(queue, row.id)
    }
}
