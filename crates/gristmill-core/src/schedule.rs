//! The schedule: a stored rule that puts tasks, and the answer to one fire.

use std::time::Duration;

use crate::policy::next_fire::FireTimes;
use crate::setting_values::words;
use crate::{
    Headers, NewTask, Payload, PutAnswer, QueueName, Result, ScheduleName, Start, StoreError,
    TaskId, TaskSettings, Timestamp,
};

/// When a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// A cron expression, read in the schedule's time zone.
    Cron(String),
    /// This often, counted from the epoch, so that every process agrees.
    Every(Duration),
}

/// What happens to fires that nobody made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// One fire for all of them.
    #[default]
    Once,
    /// None.
    Skip,
    /// Each of them, up to a hundred.
    All,
}

/// What happens when the task of the fire before still stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// Another one is put.
    #[default]
    Allow,
    /// This fire is passed over.
    Skip,
}

words!(Missed { Once = "once", Skip = "skip", All = "all" });
words!(Overlap { Allow = "allow", Skip = "skip" });

/// What is said about the tasks of a schedule besides their payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskOptions {
    /// What they are about.
    pub key: Option<String>,
    /// What they are counted with while they run.
    pub group: Option<String>,
    /// Who produced them.
    pub source: Option<String>,
    /// Lower runs first.
    pub priority: i16,
    /// How long after the fire they may run.
    pub delay: Option<Duration>,
    /// Small facts that travel with them.
    pub headers: Headers,
    /// What holds for them in place of their queue's settings.
    pub settings: TaskSettings,
}

/// Says that a schedule exists and how it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleDeclaration {
    /// Its name.
    pub name: ScheduleName,
    /// Where its tasks go.
    pub queue: QueueName,
    /// When it fires.
    pub rule: Rule,
    /// The IANA name of its time zone.
    pub zone: String,
    /// What it puts; nothing when a finder decides.
    pub payload: Option<Payload>,
    /// What else is said about the tasks it puts.
    pub options: TaskOptions,
    /// What happens to missed fires.
    pub missed: Missed,
    /// What happens when the one before still stands.
    pub overlap: Overlap,
}

/// A stored schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What was declared.
    pub declared: ScheduleDeclaration,
    /// It does not fire by itself.
    pub paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Fires up to this instant are decided; later ones are not.
    pub decided_until: Timestamp,
    /// The last instant that put something. A finder's fires put nothing
    /// themselves: of a schedule with one, when a run was last asked for by
    /// hand.
    pub last_fire: Option<Timestamp>,
    /// The tasks of that fire.
    pub last_tasks: Vec<TaskId>,
    /// When it was first declared.
    pub created_at: Timestamp,
}

impl Schedule {
    /// A schedule that nobody declared before, decided up to now.
    #[must_use]
    pub fn new(declared: ScheduleDeclaration, now: Timestamp) -> Self {
        Schedule {
            declared,
            paused: false,
            paused_by: None,
            decided_until: now,
            last_fire: None,
            last_tasks: Vec::new(),
            created_at: now,
        }
    }

    /// Stops or resumes it. Resumed, it is decided up to now; a run that was
    /// asked for by hand still is.
    pub fn pause(&mut self, paused: bool, by: &str, now: Timestamp) {
        if self.paused && !paused {
            let asked = self.asked().is_some();
            // Whoever resumes it wants it to fire, whatever a wrong clock decided.
            self.clamp(now);
            self.decided_until = self.decided_until.max(now);
            if asked {
                self.ask(now);
            }
        }
        self.paused = paused;
        self.paused_by = paused.then(|| by.to_owned());
    }

    /// Whether more lies decided ahead than any fire could have decided: a whole
    /// interval. A clock that was wrong did it; a small step back does not.
    #[must_use]
    pub fn is_ahead(&self, now: Timestamp) -> bool {
        if self.decided_until <= now {
            return false;
        }
        let Ok(times) = FireTimes::new(&self.declared.rule, &self.declared.zone) else {
            return false;
        };
        let second = times.after(now).and_then(|first| times.after(first));
        second.is_some_and(|second| second <= self.decided_until)
    }

    /// Decides it up to now and no further, if a wrong clock did.
    pub fn clamp(&mut self, now: Timestamp) {
        if self.is_ahead(now) {
            self.decided_until = now;
            // It would stand for a run that was asked for and is to come.
            self.last_fire = self.last_fire.filter(|at| *at <= now);
        }
    }

    /// When a run of its finder was asked for by hand, unless one was made since.
    /// Whoever has the finder's code fires this instant once it ran.
    #[must_use]
    pub fn asked(&self) -> Option<Timestamp> {
        self.last_fire.filter(|at| self.declared.payload.is_none() && *at > self.decided_until)
    }

    /// Records that this fire asks for a run of the finder, if it does. The
    /// instant is of the store's clock, or just after what is decided.
    #[must_use]
    pub fn takes_as_asked(&mut self, fire: &Fire, now: Timestamp) -> bool {
        let asks = fire.by_hand && fire.tasks.is_empty() && self.declared.payload.is_none();
        if asks {
            self.ask(now);
        }
        asks
    }

    fn ask(&mut self, now: Timestamp) {
        self.last_fire = Some(now.max(self.decided_until.after(Duration::from_micros(1))));
    }

    /// Why this fire is not made, before any look at tasks. An instant ahead of
    /// the store's clock would decide all instants up to it, unfired. What was
    /// asked for by hand is decided whatever else is so.
    #[must_use]
    pub fn refuses(&self, fire: &Fire, now: Timestamp) -> Option<FireAnswer> {
        if fire.by_hand || self.asked() == Some(fire.instant) {
            None
        } else if self.paused {
            Some(FireAnswer::Paused)
        } else if fire.instant <= self.decided_until {
            Some(FireAnswer::AlreadyDecided)
        } else if fire.instant > now {
            Some(FireAnswer::NotYet(fire.instant.since(now)))
        } else {
            None
        }
    }
}

impl ScheduleDeclaration {
    /// The task of one fire; nothing when a finder decides.
    #[must_use]
    pub fn task(&self) -> Option<NewTask> {
        let (payload, options) = (self.payload.clone()?, self.options.clone());
        Some(NewTask {
            payload,
            key: options.key,
            group: options.group,
            source: options.source,
            priority: options.priority,
            start: options.delay.map_or(Start::Now, Start::After),
            id: None,
            headers: options.headers,
            settings: options.settings,
        })
    }

    /// Whether it can ever fire.
    ///
    /// # Errors
    /// When its rule or its time zone cannot be read, the rule never fires, or no task
    /// can have the settings it gives its tasks.
    pub fn check(&self) -> Result<()> {
        if let Some(why) = self.options.settings.fault() {
            return Err(StoreError::invalid(format!("schedule '{}': {why}", self.name)));
        }
        FireTimes::new(&self.rule, &self.zone)
            .map(drop)
            .map_err(|e| StoreError::invalid(format!("schedule '{}': {e}", self.name)))
    }
}

/// One fire of a schedule: puts its tasks unless that instant was decided
/// before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// The schedule.
    pub schedule: ScheduleName,
    /// The instant it is for.
    pub instant: Timestamp,
    /// What to put. May be empty: the instant is then decided without a task.
    pub tasks: Vec<NewTask>,
    /// By hand, now: neither asks nor moves what is decided, and works while
    /// the schedule is paused. Without tasks, of a schedule with a finder, it
    /// asks whoever has the finder's code for a run.
    pub by_hand: bool,
}

/// What the store says to a fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FireAnswer {
    /// The tasks were put; one answer each.
    Fired(Vec<PutAnswer>),
    /// The schedule has a finder: whoever has its code is asked for a run.
    Asked,
    /// This instant was decided before, by this process or another.
    AlreadyDecided,
    /// The task of the fire before still stands; the instant is decided.
    Overlapped(TaskId),
    /// The schedule is paused; nothing is decided.
    Paused,
    /// By the store's clock the instant lies this far ahead; nothing is
    /// decided. Whoever fires has a clock that is wrong.
    NotYet(Duration),
    /// There is no such schedule.
    Unknown,
}
