//! Schedules: each instant is decided once, whoever fires it.

use super::state::State;
use crate::policy::fire::{self, Begun};
use crate::{
    Fire, FireAnswer, PutRequest, Result, Schedule, ScheduleDeclaration, ScheduleName,
    State as TaskState, TaskId, Timestamp,
};

impl State {
    /// Says that a schedule exists.
    ///
    /// # Errors
    /// As [`Store::declare_schedule`](crate::Store::declare_schedule).
    pub fn declare_schedule(
        &mut self,
        declaration: ScheduleDeclaration,
        now: Timestamp,
    ) -> Result<Schedule> {
        self.number(&declaration.queue)?;
        declaration.check()?;
        let name = declaration.name.clone();
        let schedule = match self.schedules.get(&name) {
            Some(known) => Schedule { declared: declaration, ..known.clone() },
            None => Schedule::new(declaration, now),
        };
        self.schedules.insert(name, schedule.clone());
        Ok(schedule)
    }

    /// Stops or resumes a schedule.
    pub fn pause_schedule(
        &mut self,
        name: &ScheduleName,
        paused: bool,
        by: &str,
        now: Timestamp,
    ) -> bool {
        let Some(schedule) = self.schedules.get_mut(name) else {
            return false;
        };
        schedule.pause(paused, by, now);
        true
    }

    /// Decides one instant of a schedule.
    ///
    /// # Errors
    /// As [`Store::fire`](crate::Store::fire).
    pub fn fire(&mut self, fire: Fire, now: Timestamp) -> Result<FireAnswer> {
        // A put that fails leaves it as it was.
        let Some(mut schedule) = self.schedules.get(&fire.schedule).cloned() else {
            return Ok(FireAnswer::Unknown);
        };
        let answer = match fire::begin(&mut schedule, &fire, now) {
            Begun::Refused(answer) => return Ok(answer),
            Begun::Decided(answer) => answer,
            Begun::Puts(unless) => {
                let put = match self.first_standing(&unless) {
                    Some(standing) => Err(standing),
                    None => {
                        let (queue, tasks) = (schedule.declared.queue.clone(), fire.tasks.clone());
                        Ok(self.put(PutRequest { queue, tasks, atomic: false }, now)?.answers)
                    }
                };
                fire::end(&mut schedule, &fire, put)
            }
        };
        self.schedules.insert(fire.schedule, schedule);
        Ok(answer)
    }

    /// The first of these tasks that has not ended.
    fn first_standing(&self, ids: &[TaskId]) -> Option<TaskId> {
        ids.iter()
            .copied()
            .find(|id| self.rows.get(&id.0).is_some_and(|row| row.task.state != TaskState::Failed))
    }
}
