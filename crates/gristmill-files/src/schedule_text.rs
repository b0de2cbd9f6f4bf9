//! A schedule as JSON.

use std::time::Duration;

use gristmill_core::{
    Missed, Overlap, Payload, Result, Rule, Schedule, ScheduleDeclaration, ScheduleName, TaskId,
};
use serde::{Deserialize, Serialize};

use crate::errors::corrupt;
use crate::fact::{instant, micros, queue_name};

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
    paused: bool,
    paused_by: Option<String>,
    decided_until: i64,
    last_fire: Option<i64>,
    last_tasks: Vec<i64>,
    created_at: i64,
}

/// The words for both policies, in the order of the values.
const MISSED: [(&str, Missed); 3] =
    [("once", Missed::Once), ("skip", Missed::Skip), ("all", Missed::All)];
const OVERLAP: [(&str, Overlap); 2] = [("allow", Overlap::Allow), ("skip", Overlap::Skip)];

fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> String {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| *word).to_owned()
}

fn meant<T: Copy>(words: &[(&str, T)], word: &str) -> Result<T> {
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).ok_or_else(|| corrupt("a schedule's policy", word))
}

impl ScheduleText {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let declared = &schedule.declared;
        let (cron, every) = match &declared.rule {
            Rule::Cron(cron) => (Some(cron.clone()), None),
            Rule::Every(every) => (None, Some(micros(*every))),
        };
        let payload = declared.payload.as_ref();
        ScheduleText {
            name: declared.name.to_string(),
            queue: declared.queue.to_string(),
            cron,
            every,
            zone: declared.zone.clone(),
            payload: payload.map(|payload| (payload.encoding.to_string(), payload.bytes.to_vec())),
            missed: word(&MISSED, &declared.missed),
            overlap: word(&OVERLAP, &declared.overlap),
            paused: schedule.paused,
            paused_by: schedule.paused_by.clone(),
            decided_until: schedule.decided_until.as_micros(),
            last_fire: schedule.last_fire.map(|at| at.as_micros()),
            last_tasks: schedule.last_tasks.iter().map(|id| id.0).collect(),
            created_at: schedule.created_at.as_micros(),
        }
    }

    pub(crate) fn into_schedule(self) -> Result<Schedule> {
        let rule = match (self.cron, self.every) {
            (Some(cron), _) => Rule::Cron(cron),
            (None, Some(every)) => Rule::Every(Duration::from_micros(every)),
            (None, None) => return Err(corrupt("a schedule", "it has no rule")),
        };
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
            rule,
            zone: self.zone,
            payload,
            missed: meant(&MISSED, &self.missed)?,
            overlap: meant(&OVERLAP, &self.overlap)?,
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
