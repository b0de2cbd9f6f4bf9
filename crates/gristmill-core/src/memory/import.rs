//! Importing tasks of another store.

use super::state::{Row, State};
use crate::import::{Import, ImportAnswer, ImportTask, MARK_KEPT};
use crate::policy::duplicate::Places;
use crate::{CheckpointMark, Refusal, Result, State as TaskState, StoreError, TaskId, Timestamp};

impl State {
    /// Takes in tasks that stood in another store.
    ///
    /// # Errors
    /// As [`Store::import`](crate::Store::import).
    pub fn import(&mut self, import: Import, now: Timestamp) -> Result<Vec<ImportAnswer>> {
        if import.tasks.len() > self.limits.put_tasks {
            return Err(StoreError::invalid(format!(
                "{} tasks in one import and {} are allowed",
                import.tasks.len(),
                self.limits.put_tasks
            )));
        }
        let number = self.number(&import.queue)?;
        import.tasks.into_iter().map(|task| self.import_one(number, &task, now)).collect()
    }

    fn import_one(
        &mut self,
        number: u32,
        imported: &ImportTask,
        now: Timestamp,
    ) -> Result<ImportAnswer> {
        let mut task = match imported.admitted(&self.limits) {
            Ok(task) => task,
            Err(refusal) => return Ok(ImportAnswer::Refused(refusal)),
        };
        let digest = task.payload.digest();
        let queue = self.queue_mut(number)?;
        if let Some((id, known, until)) = queue.ids.get(&imported.mark).copied()
            && until > now
        {
            return Ok(if known == digest {
                ImportAnswer::Already { id }
            } else {
                ImportAnswer::Refused(Refusal::IdReused { first: id })
            });
        }
        let places = task.key.as_deref().map_or(Places::default(), |key| queue.places(key));
        if let Some(id) = imported.kept_out_by(places) {
            return Ok(ImportAnswer::Duplicate { id });
        }
        let name = queue.queue.name.clone();
        let held = (self.rows.len() + self.done.len()) as u64;
        let checkpoint = task.checkpoint.as_deref().map(CheckpointMark::of);
        let payload_len = task.payload.bytes.len();
        let bytes = payload_len + checkpoint.map_or(0, |mark| mark.bytes);
        if held >= self.max_tasks || self.bytes + bytes > self.max_bytes {
            let full = Refusal::StoreFull { tasks: held, bytes: self.bytes };
            return Ok(ImportAnswer::Refused(full));
        }
        let id = TaskId(self.next_id);
        self.next_id += 1;
        self.bytes += bytes;
        let in_flight = imported.takes_flight();
        let failed = task.state == TaskState::Failed;
        let is_wanted = task.settings.is_wanted();
        let (put_at, key) = (task.created_at, task.key.clone());
        task.id = id;
        task.queue = name;
        task.blocked = !failed && !in_flight && places.in_flight.is_some();
        let known = (id, digest, now.after(MARK_KEPT));
        self.set_caller_id(number, imported.mark.clone(), Some(known));
        let queue = self.queue_mut(number)?;
        queue.counters.put += 1;
        queue.minute(now, |minute| minute.put += 1);
        if failed {
            queue.counts.failed += 1;
        } else if let Some(key) = &task.key {
            let places = queue.places.entry(key.clone()).or_default();
            if in_flight {
                places.in_flight = Some(id);
            } else {
                places.waiting = Some(id);
            }
        }
        self.note(|changes| changes.caller_ids.push((number, imported.mark.clone())));
        let row = Row {
            payload_len,
            checkpoint,
            task,
            number,
            in_flight,
            started_releases: 0,
            lease: None,
            settled: None,
            delayed: false,
        };
        self.rows.insert(id.0, Box::new(row));
        if !failed {
            self.enter(id.0, now);
        }
        if let Some(behind) = places.waiting.filter(|_| in_flight) {
            self.leave(behind.0);
            if let Some(row) = self.rows.get_mut(&behind.0) {
                row.task.blocked = true;
            }
            self.enter(behind.0, now);
        }
        if let Some(key) = key.filter(|_| !failed) {
            // Its window goes on as if it had been put here.
            self.open_window(number, &key, (id, put_at), now);
        }
        if is_wanted {
            self.want(id, now);
        }
        Ok(ImportAnswer::Imported { id })
    }
}
