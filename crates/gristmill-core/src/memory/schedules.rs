//! Schedules: each instant is decided once, whoever fires it.

use super::state::State;
use crate::{
    Fire, FireAnswer, Overlap, PutRequest, Result, Schedule, ScheduleDeclaration, ScheduleName,
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
        let Some(schedule) = self.schedules.get_mut(&fire.schedule) else {
            return Ok(FireAnswer::Unknown);
        };
        if let Some(refused) = schedule.refuses(&fire, now) {
            return Ok(refused);
        }
        if schedule.takes_as_asked(&fire, now) {
            return Ok(FireAnswer::Asked);
        }
        let queue = schedule.declared.queue.clone();
        let last = match schedule.declared.overlap {
            Overlap::Skip => schedule.last_tasks.clone(),
            Overlap::Allow => Vec::new(),
        };
        let standing = self.first_standing(&last);
        let answers = match standing {
            Some(_) => Vec::new(),
            None => self.put(PutRequest { queue, tasks: fire.tasks, atomic: false }, now)?.answers,
        };
        let Some(schedule) = self.schedules.get_mut(&fire.schedule) else {
            return Ok(FireAnswer::Unknown);
        };
        if !fire.by_hand {
            schedule.decided_until = fire.instant;
        }
        if let Some(id) = standing {
            return Ok(FireAnswer::Overlapped(id));
        }
        let tasks: Vec<TaskId> = answers.iter().filter_map(crate::PutAnswer::id).collect();
        if !tasks.is_empty() {
            schedule.last_fire = Some(fire.instant);
            schedule.last_tasks = tasks;
        }
        Ok(FireAnswer::Fired(answers))
    }

    /// The first of these tasks that has not ended.
    fn first_standing(&self, ids: &[TaskId]) -> Option<TaskId> {
        ids.iter()
            .copied()
            .find(|id| self.rows.get(&id.0).is_some_and(|row| row.task.state != TaskState::Failed))
    }
}
