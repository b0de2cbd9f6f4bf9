//! A schedule as it is shown, and what a fire by hand came to.

use gristmill::Timestamp;
use gristmill::port::policy::next_fire::FireTimes;
use gristmill::port::{FireAnswer, Rule, Schedule};
use serde::Serialize;

use super::answer::PutOut;
use super::fields::millis;

/// A schedule.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleOut<'a> {
    schedule: &'a str,
    queue: &'a str,
    cron: Option<&'a str>,
    every_ms: Option<u64>,
    zone: &'a str,
    missed: &'static str,
    overlap: &'static str,
    /// Code decides what it puts.
    finder: bool,
    paused: bool,
    paused_by: Option<&'a str>,
    last_fire: Option<String>,
    next_fire: Option<String>,
    created_at: String,
}

impl<'a> ScheduleOut<'a> {
    pub(crate) fn of(schedule: &'a Schedule, now: Timestamp) -> Self {
        let declared = &schedule.declared;
        let (cron, every_ms) = match &declared.rule {
            Rule::Cron(expression) => (Some(expression.as_str()), None),
            Rule::Every(every) => (None, Some(millis(*every))),
        };
        let times = FireTimes::new(&declared.rule, &declared.zone).ok();
        let next = times
            .filter(|_| !schedule.paused)
            .and_then(|times| times.after(now.max(schedule.decided_until)));
        ScheduleOut {
            schedule: declared.name.as_str(),
            queue: declared.queue.as_str(),
            cron,
            every_ms,
            zone: &declared.zone,
            missed: declared.missed.as_str(),
            overlap: declared.overlap.as_str(),
            finder: declared.payload.is_none(),
            paused: schedule.paused,
            paused_by: schedule.paused_by.as_deref(),
            last_fire: schedule.last_fire.map(|at| at.to_string()),
            next_fire: next.map(|at| at.to_string()),
            created_at: schedule.created_at.to_string(),
        }
    }
}

/// What a fire by hand came to.
#[derive(Debug, Serialize)]
pub(crate) struct FiredOut {
    schedule: String,
    /// `fired`, or `asked`: whoever has the finder's code runs it.
    outcome: &'static str,
    answers: Vec<PutOut>,
}

impl FiredOut {
    pub(crate) fn of(schedule: &str, answer: FireAnswer) -> Self {
        let (outcome, answers) = match answer {
            FireAnswer::Fired(answers) => ("fired", answers),
            _ => ("asked", Vec::new()),
        };
        let answers = answers.into_iter().map(PutOut::from).collect();
        FiredOut { schedule: schedule.to_owned(), outcome, answers }
    }
}
