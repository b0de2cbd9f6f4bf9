//! Schedules: each instant is decided once, whoever fires it.

use gristmill_core::policy::fire::{self, Begun};
use gristmill_core::{
    Fire, FireAnswer, PutAnswer, Result, Schedule, ScheduleDeclaration, ScheduleName, TaskId,
};
use gristmill_text::ScheduleText;
use tokio_postgres::Row;

use crate::answer::{column, readable};
use crate::deadline::Class;
use crate::errors::corrupt;
use crate::pool::Taken;
use crate::put::{self, Columns, Patience, Sifted};
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

/// Reads a stored schedule.
pub(crate) fn schedule(row: &Row) -> Result<Schedule> {
    Ok(Schedule {
        declared: ScheduleText::read(
            column(row, at!(ScheduleAll.name))?,
            column(row, at!(ScheduleAll.declared))?,
            column(row, at!(ScheduleAll.payload))?,
        )?,
        paused: column(row, at!(ScheduleAll.paused))?,
        paused_by: column(row, at!(ScheduleAll.paused_by))?,
        decided_until: column::<At>(row, at!(ScheduleAll.decided_until))?.0,
        last_fire: column::<Option<At>>(row, at!(ScheduleAll.last_fire))?.map(|at| at.0),
        last_tasks: column::<Vec<i64>>(row, at!(ScheduleAll.last_tasks))?
            .into_iter()
            .map(TaskId)
            .collect(),
        created_at: column::<At>(row, at!(ScheduleAll.created_at))?.0,
    })
}

/// The schedule, which nobody else changes until the transaction ends.
async fn locked(connection: &mut Taken<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
    let rows = connection.run(Sql::ScheduleLock, &[&name.as_str()]).await?;
    rows.first().map(schedule).transpose()
}

async fn save(connection: &mut Taken<'_>, schedule: &Schedule) -> Result<()> {
    let declared = &schedule.declared;
    let text = ScheduleText::write(declared)?;
    let tasks: Vec<i64> = schedule.last_tasks.iter().map(|id| id.0).collect();
    connection
        .run(
            Sql::ScheduleSave,
            &[
                &declared.name.as_str(),
                &text,
                &declared.payload.as_ref().map(|p| p.bytes.as_ref()),
                &schedule.paused,
                &schedule.paused_by,
                &At(schedule.decided_until),
                &schedule.last_fire.map(At),
                &tasks,
                &At(schedule.created_at),
            ],
        )
        .await?;
    Ok(())
}

impl Inner {
    /// All schedules, by name.
    pub(crate) async fn schedules(&self) -> Result<Vec<Schedule>> {
        let rows = self.pool.read(Sql::ScheduleAll, &[]).await?;
        Ok(readable(&rows, "a schedule", schedule))
    }

    /// Says that a schedule exists.
    pub(crate) async fn declare_schedule(
        &self,
        declaration: ScheduleDeclaration,
    ) -> Result<Schedule> {
        self.number(&declaration.queue).await?;
        declaration.check()?;
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        // A row that is not there cannot be locked: one declaration at a time.
        connection.run(Sql::QueueLock, &[]).await?;
        let now = self.time(&mut connection).await?;
        let schedule = match locked(&mut connection, &declaration.name).await? {
            Some(known) => Schedule { declared: declaration, ..known },
            None => Schedule::new(declaration, now),
        };
        save(&mut connection, &schedule).await?;
        connection.commit().await?;
        Ok(schedule)
    }

    /// Brings back schedules that a clock that was ahead decided too far.
    pub(crate) async fn clamp_schedules(&self) -> Result<()> {
        for known in self.schedules().await? {
            let mut connection = self.pool.take(Class::Flow).await?;
            connection.begin().await?;
            let now = self.time(&mut connection).await?;
            match locked(&mut connection, &known.declared.name).await? {
                Some(mut schedule) if schedule.is_ahead(now) => {
                    schedule.clamp(now);
                    save(&mut connection, &schedule).await?;
                    connection.commit().await?;
                }
                _ => connection.roll_back().await?,
            }
        }
        Ok(())
    }

    /// Deletes a schedule; returns whether there was one.
    pub(crate) async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool> {
        Ok(!self.pool.write(Sql::ScheduleRemove, &[&name.as_str()]).await?.is_empty())
    }

    /// Stops or resumes a schedule.
    pub(crate) async fn pause_schedule(
        &self,
        name: &ScheduleName,
        paused: bool,
        by: &str,
    ) -> Result<bool> {
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        let now = self.time(&mut connection).await?;
        let Some(mut schedule) = locked(&mut connection, name).await? else {
            connection.roll_back().await?;
            return Ok(false);
        };
        schedule.pause(paused, by, now);
        save(&mut connection, &schedule).await?;
        connection.commit().await?;
        Ok(true)
    }

    /// Decides one instant and puts its tasks, in one step.
    pub(crate) async fn fire(&self, fire: &Fire) -> Result<FireAnswer> {
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        let Some(mut schedule) = locked(&mut connection, &fire.schedule).await? else {
            connection.roll_back().await?;
            return Ok(FireAnswer::Unknown);
        };
        let now = self.time(&mut connection).await?;
        let ahead = self.is_back() && schedule.is_ahead(now);
        if ahead {
            schedule.clamp(now);
        }
        let (answer, changed) = match fire::begin(&mut schedule, fire, now) {
            Begun::Refused(answer) => (answer, ahead),
            Begun::Decided(answer) => (answer, true),
            Begun::Puts(unless) => {
                let put = match standing(&mut connection, &unless).await? {
                    Some(standing) => Err(standing),
                    None => Ok(self.put_fired(&mut connection, &schedule, fire).await?),
                };
                (fire::end(&mut schedule, fire, put), true)
            }
        };
        if !changed {
            connection.roll_back().await?;
            return Ok(answer);
        }
        save(&mut connection, &schedule).await?;
        connection.commit().await?;
        if let FireAnswer::Fired(_) = answer {
            self.woken(std::slice::from_ref(&schedule.declared.queue));
        }
        Ok(answer)
    }

    /// Puts a fire's tasks, while its schedule is locked.
    async fn put_fired(
        &self,
        connection: &mut Taken<'_>,
        schedule: &Schedule,
        fire: &Fire,
    ) -> Result<Vec<PutAnswer>> {
        if fire.tasks.is_empty() {
            return Ok(Vec::new());
        }
        let sifted = Sifted::new(&fire.tasks, &self.limits);
        let columns = Columns::of(&sifted.fit)?;
        // The schedule is locked meanwhile: better to try again later.
        let values = self.put_values(&schedule.declared.queue, false, sifted.refused());
        let values = values.patient(Patience::Turn);
        let rows = connection.run(Sql::Put, &values.as_refs(&columns)).await?;
        let row = rows.first().ok_or_else(|| corrupt("a fire", "it has no answer"))?;
        let put = put::answers(row, &sifted.fit)?;
        let put = put.ok_or_else(|| corrupt("a schedule", "its queue is gone"))?;
        Ok(sifted.whole(put)?.answers)
    }
}

/// The first of these tasks that has not ended.
async fn standing(connection: &mut Taken<'_>, ids: &[TaskId]) -> Result<Option<TaskId>> {
    if ids.is_empty() {
        return Ok(None);
    }
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let rows = connection.run(Sql::ScheduleStanding, &[&ids]).await?;
    rows.first().map(|row| Ok(TaskId(column(row, at!(ScheduleStanding.id))?))).transpose()
}
