//! What one fire of a schedule makes of it, whoever fires and wherever it is kept.

use crate::{Fire, FireAnswer, Overlap, PutAnswer, Schedule, TaskId, Timestamp};

/// How a fire begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is not made, and the schedule is as it was.
    Refused(FireAnswer),
    /// That is all of it, and the schedule changed.
    Decided(FireAnswer),
    /// Its tasks are to be put, unless one of these has not ended; then it [ends](end).
    Puts(Vec<TaskId>),
}

/// Begins a fire of a schedule that nobody else changes meanwhile.
#[must_use]
pub fn begin(schedule: &mut Schedule, fire: &Fire, now: Timestamp) -> Begun {
    if let Some(refused) = schedule.refuses(fire, now) {
        return Begun::Refused(refused);
    }
    if schedule.takes_as_asked(fire, now) {
        return Begun::Decided(FireAnswer::Asked);
    }
    if !fire.by_hand {
        schedule.decided_until = fire.instant;
    }
    Begun::Puts(match schedule.declared.overlap {
        Overlap::Skip => schedule.last_tasks.clone(),
        Overlap::Allow => Vec::new(),
    })
}

/// Ends a fire whose tasks were put, or were not because one of before still stands.
#[must_use]
pub fn end(
    schedule: &mut Schedule,
    fire: &Fire,
    put: Result<Vec<PutAnswer>, TaskId>,
) -> FireAnswer {
    let answers = match put {
        Ok(answers) => answers,
        Err(standing) => return FireAnswer::Overlapped(standing),
    };
    let tasks: Vec<TaskId> = answers.iter().filter_map(PutAnswer::id).collect();
    if !tasks.is_empty() {
        schedule.last_fire = Some(fire.instant);
        schedule.last_tasks = tasks;
    }
    FireAnswer::Fired(answers)
}
