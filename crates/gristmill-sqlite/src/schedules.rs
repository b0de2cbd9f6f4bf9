//! Schedules: each instant is decided once, whoever fires it.

use gristmill_core::policy::fire::{self, Begun};
use gristmill_core::{
    Fire, FireAnswer, PutRequest, Result, Schedule, ScheduleDeclaration, ScheduleName, TaskId,
    Timestamp,
};
use gristmill_text::ScheduleText;
use rusqlite::Row as SqlRow;

use crate::codec;
use crate::db::Db;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// A schedule as it is stored.
struct ScheduleRow {
    name: String,
    declared: String,
    payload: Option<Vec<u8>>,
    paused: bool,
    paused_by: Option<String>,
    decided_until: i64,
    last_fire: Option<i64>,
    last_tasks: Vec<u8>,
    created_at: i64,
}

impl ScheduleRow {
    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(ScheduleRow {
            name: row.get(at!(ScheduleAll.name))?,
            declared: row.get(at!(ScheduleAll.declared))?,
            payload: row.get(at!(ScheduleAll.payload))?,
            paused: row.get(at!(ScheduleAll.paused))?,
            paused_by: row.get(at!(ScheduleAll.paused_by))?,
            decided_until: row.get(at!(ScheduleAll.decided_until))?,
            last_fire: row.get(at!(ScheduleAll.last_fire))?,
            last_tasks: row.get(at!(ScheduleAll.last_tasks))?,
            created_at: row.get(at!(ScheduleAll.created_at))?,
        })
    }

    fn into_schedule(self) -> Result<Schedule> {
        Ok(Schedule {
            declared: ScheduleText::read(&self.name, &self.declared, self.payload)?,
            paused: self.paused,
            paused_by: self.paused_by,
            decided_until: Timestamp::from_micros(self.decided_until),
            last_fire: self.last_fire.map(Timestamp::from_micros),
            last_tasks: codec::ids(&self.last_tasks).into_iter().map(TaskId).collect(),
            created_at: Timestamp::from_micros(self.created_at),
        })
    }
}

/// All schedules, by name.
pub(crate) fn schedules(db: &Db<'_>) -> Result<Vec<Schedule>> {
    db.all(Sql::ScheduleAll, [], ScheduleRow::read)?
        .into_iter()
        .map(ScheduleRow::into_schedule)
        .collect()
}

impl Write<'_, '_> {
    fn schedule(&self, name: &ScheduleName) -> Result<Option<Schedule>> {
        let row = self.db.one(
            Sql::ScheduleByName,
            bind!(ScheduleByName { name: name.as_str() }),
            ScheduleRow::read,
        )?;
        row.map(ScheduleRow::into_schedule).transpose()
    }

    fn save_schedule(&self, schedule: &Schedule) -> Result<()> {
        let declared = &schedule.declared;
        let text = ScheduleText::write(declared)?;
        let tasks: Vec<i64> = schedule.last_tasks.iter().map(|id| id.0).collect();
        self.db.run(
            Sql::ScheduleSave,
            bind!(ScheduleSave {
                name: declared.name.as_str(),
                declared: text,
                payload: declared.payload.as_ref().map(|p| p.bytes.as_ref()),
                paused: schedule.paused,
                paused_by: schedule.paused_by,
                decided_until: schedule.decided_until.as_micros(),
                last_fire: schedule.last_fire.map(Timestamp::as_micros),
                last_tasks: codec::ids_blob(&tasks),
                created_at: schedule.created_at.as_micros()
            }),
        )?;
        Ok(())
    }

    /// Brings back schedules that a clock that was ahead decided too far.
    pub(crate) fn clamp_schedules(&self) -> Result<()> {
        for mut schedule in schedules(self.db)? {
            if schedule.is_ahead(self.now) {
                schedule.clamp(self.now);
                self.save_schedule(&schedule)?;
            }
        }
        Ok(())
    }

    /// Says that a schedule exists.
    pub(crate) fn declare_schedule(
        &mut self,
        declaration: &ScheduleDeclaration,
    ) -> Result<Schedule> {
        self.queue(&declaration.queue)?;
        declaration.check()?;
        let schedule = match self.schedule(&declaration.name)? {
            Some(known) => Schedule { declared: declaration.clone(), ..known },
            None => Schedule::new(declaration.clone(), self.now),
        };
        self.save_schedule(&schedule)?;
        Ok(schedule)
    }

    /// Deletes a schedule; returns whether there was one.
    pub(crate) fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        let removed =
            self.db.run(Sql::ScheduleRemove, bind!(ScheduleRemove { name: name.as_str() }))?;
        Ok(removed > 0)
    }

    /// Stops or resumes a schedule.
    pub(crate) fn pause_schedule(
        &self,
        name: &ScheduleName,
        paused: bool,
        by: &str,
    ) -> Result<bool> {
        let Some(mut schedule) = self.schedule(name)? else {
            return Ok(false);
        };
        schedule.pause(paused, by, self.now);
        self.save_schedule(&schedule)?;
        Ok(true)
    }

    /// Decides one instant and puts its tasks, in one step.
    pub(crate) fn fire(&mut self, fire: &Fire) -> Result<FireAnswer> {
        let Some(mut schedule) = self.schedule(&fire.schedule)? else {
            return Ok(FireAnswer::Unknown);
        };
        let answer = match fire::begin(&mut schedule, fire, self.now) {
            Begun::Refused(answer) => return Ok(answer),
            Begun::Decided(answer) => answer,
            Begun::Puts(unless) => {
                let put = match self.first_standing(&unless)? {
                    Some(standing) => Err(standing),
                    None => {
                        let (queue, tasks) = (schedule.declared.queue.clone(), fire.tasks.clone());
                        Ok(self.put(&PutRequest { queue, tasks, atomic: false })?.answers)
                    }
                };
                fire::end(&mut schedule, fire, put)
            }
        };
        self.save_schedule(&schedule)?;
        Ok(answer)
    }

    /// The first of these tasks that has not ended.
    fn first_standing(&self, ids: &[TaskId]) -> Result<Option<TaskId>> {
        for id in ids {
            if self.db.any(Sql::TaskStands, bind!(TaskStands { id: id.0 }))? {
                return Ok(Some(*id));
            }
        }
        Ok(None)
    }
}
