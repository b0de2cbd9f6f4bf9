//! A schedule as JSON.

use gristmill_core::{Payload, Result, Schedule, ScheduleDeclaration, ScheduleName, TaskId};
use gristmill_text::{OptionsText, queue_name, rule, rule_parts};
use serde::{Deserialize, Serialize};

use crate::errors::corrupt;
use crate::fact::instant;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScheduleText {
    name: String,
    queue: String,
    cron: Option<String>,
    every: Option<u64>,
    zone: String,
    payload: Option<(String, Vec<u8>)>,
    missed: String,
    overlap: String,
    /// Boxed: few have any, and a fact would be large for all.
    #[serde(default, skip_serializing_if = "OptionsText::is_empty")]
    task: Box<OptionsText>,
    paused: bool,
    paused_by: Option<String>,
    decided_until: i64,
    last_fire: Option<i64>,
    last_tasks: Vec<i64>,
    created_at: i64,
}

impl ScheduleText {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let declared = &schedule.declared;
        let (cron, every) = rule_parts(&declared.rule);
        let payload = declared.payload.as_ref();
        ScheduleText {
            name: declared.name.to_string(),
            queue: declared.queue.to_string(),
            cron,
            every,
            zone: declared.zone.clone(),
            payload: payload.map(|payload| (payload.encoding.to_string(), payload.bytes.to_vec())),
            missed: declared.missed.as_str().to_owned(),
            overlap: declared.overlap.as_str().to_owned(),
            task: Box::new(OptionsText::of(&declared.options)),
            paused: schedule.paused,
            paused_by: schedule.paused_by.clone(),
            decided_until: schedule.decided_until.as_micros(),
            last_fire: schedule.last_fire.map(|at| at.as_micros()),
            last_tasks: schedule.last_tasks.iter().map(|id| id.0).collect(),
            created_at: schedule.created_at.as_micros(),
        }
    }

    pub(crate) fn into_schedule(self) -> Result<Schedule> {
        let payload = match self.payload {
            None => None,
            Some((encoding, bytes)) => {
                let encoding = encoding.parse().map_err(|e| corrupt("a schedule's payload", e))?;
                Some(Payload { bytes: bytes.into(), encoding })
            }
        };
        let declared = ScheduleDeclaration {
            name: ScheduleName::new(&self.name).map_err(|e| corrupt("a schedule's name", e))?,
            queue: queue_name(&self.queue)?,
            rule: rule(self.cron, self.every)?,
            zone: self.zone,
            payload,
            options: self.task.into_options()?,
            missed: self.missed.parse().map_err(|e| corrupt("a schedule's policy", e))?,
            overlap: self.overlap.parse().map_err(|e| corrupt("a schedule's policy", e))?,
        };
        Ok(Schedule {
            declared,
            paused: self.paused,
            paused_by: self.paused_by,
            decided_until: instant(self.decided_until),
            last_fire: self.last_fire.map(instant),
            last_tasks: self.last_tasks.into_iter().map(TaskId).collect(),
            created_at: instant(self.created_at),
        })
    }
}
