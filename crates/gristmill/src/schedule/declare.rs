//! Declaring a schedule, said step by step.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use gristmill_core::{
    Missed, Overlap, Payload, QueueName, Rule, Schedule, ScheduleDeclaration, ScheduleName,
    StoreError, TaskOptions,
};

use super::finder::{Find, Finding, boxed};
use crate::draft::Draft;
use crate::{Error, IntoPut, Mill};

/// A schedule to be declared: when it is awaited, or by the scheduler it is
/// given to.
#[must_use = "a schedule is declared when this is awaited or given to a scheduler"]
pub struct NewSchedule {
    mill: Mill,
    name: String,
    rule: Option<Rule>,
    zone: String,
    missed: Missed,
    overlap: Overlap,
    target: Option<Result<Target, Error>>,
    finder: Option<Find>,
    timeout: Duration,
}

/// Where its tasks go, and what they are.
struct Target {
    queue: String,
    payload: Option<Payload>,
    options: TaskOptions,
}

impl Target {
    fn of_finder(queue: &str) -> Self {
        Target { queue: queue.to_owned(), payload: None, options: TaskOptions::default() }
    }

    fn of(draft: Draft) -> Result<Self, Error> {
        let Draft { queue, task, delay, at } = draft;
        let lacks = |what: &str| Err(StoreError::invalid(what.to_owned()).into());
        if task.id.is_some() {
            return lacks("a schedule's task has no id: every fire would repeat the first");
        }
        if at.is_some() {
            return lacks("a schedule says when its tasks start: leave out `at`, or say a delay");
        }
        let options = TaskOptions {
            key: task.key,
            group: task.group,
            source: task.source,
            priority: task.priority,
            delay,
            headers: task.headers,
            settings: task.settings,
        };
        Ok(Target { queue: queue.into_owned(), payload: Some(task.payload), options })
    }
}

/// How long a finder's run may take unless said: as long as a handler.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

impl fmt::Debug for NewSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSchedule")
            .field("name", &self.name)
            .field("rule", &self.rule)
            .field("zone", &self.zone)
            .finish_non_exhaustive()
    }
}

impl NewSchedule {
    pub(crate) fn new(mill: Mill, name: &str) -> Self {
        NewSchedule {
            mill,
            name: name.to_owned(),
            rule: None,
            zone: "UTC".to_owned(),
            missed: Missed::default(),
            overlap: Overlap::default(),
            target: None,
            finder: None,
            timeout: TIMEOUT,
        }
    }

    /// Fires when a cron expression says so: `0 7 * * *`, with seconds in
    /// front if there are six fields, or `@daily` and the like.
    pub fn cron(mut self, expression: &str) -> Self {
        self.rule = Some(Rule::Cron(expression.to_owned()));
        self
    }

    /// Fires this often, counted from the epoch, so that every process agrees.
    pub fn every(mut self, interval: Duration) -> Self {
        self.rule = Some(Rule::Every(interval));
        self
    }

    /// The time zone the expression is read in, by its IANA name; UTC unless
    /// said.
    pub fn zone(mut self, zone: &str) -> Self {
        self.zone = zone.to_owned();
        self
    }

    /// What happens to fires that nobody made; one for all of them unless
    /// said.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// What happens when the task of the fire before still stands; another one
    /// is put unless said.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Puts this task at each fire: a value of a [`TaskType`](crate::TaskType) or
    /// a [`Put`](crate::Put) with more said about it. It keeps its key, so a fire
    /// whose task stands already puts no second one, and it may go to a queue that
    /// is bound to a table. A delay counts from the fire.
    ///
    /// It has neither an id nor a start time of its own: every fire after the first
    /// would be a repeat, or late. Both are an error when the schedule is declared.
    pub fn puts(mut self, task: impl IntoPut) -> Self {
        self.target = Some(task.into_put().into_draft().and_then(Target::of));
        self
    }

    /// Calls this code at each fire: it lists what is due and puts it on the
    /// queue. It runs in one process at a time, under the schedule's lease,
    /// and only where the schedule is given to a [`Scheduler`](super::Scheduler).
    ///
    /// The code lives in this program; the store knows when it is to run.
    /// Several missed fires are one run: a finder finds all that is due.
    pub fn finder<F, R, E>(mut self, queue: &str, find: F) -> Self
    where
        F: Fn(Finding) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        self.target = Some(Ok(Target::of_finder(queue)));
        self.finder = Some(boxed(find, self.timeout));
        self
    }

    /// How long a run of the finder may take, 15 minutes unless said. One that
    /// hangs is dropped at its next await, which is said, and the next fire finds
    /// again; code that blocks its thread is left alone.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        if let Some(find) = &mut self.finder {
            find.timeout = timeout;
        }
        self
    }

    /// The code, for the scheduler that will run it.
    pub(super) fn take_finder(&mut self) -> Option<Find> {
        self.finder.take()
    }

    /// What the store is told.
    pub(super) fn declaration(self) -> Result<(Mill, ScheduleDeclaration), Error> {
        let lacks = |what: &str| StoreError::invalid(format!("schedule '{}' {what}", self.name));
        let rule = self.rule.ok_or_else(|| lacks("has no rule: say cron or every"))?;
        let target = self.target.ok_or_else(|| lacks("puts nothing: say puts or finder"))?;
        let Target { queue, payload, options } = target?;
        let declaration = ScheduleDeclaration {
            name: ScheduleName::new(&self.name)?,
            queue: QueueName::new(&queue)?,
            rule,
            zone: self.zone,
            payload,
            options,
            missed: self.missed,
            overlap: self.overlap,
        };
        Ok((self.mill, declaration))
    }
}

impl IntoFuture for NewSchedule {
    type Output = Result<Schedule, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let declaration = self.declaration();
        Box::pin(async move {
            let (mill, declaration) = declaration?;
            Ok(mill.store().declare_schedule(declaration).await?)
        })
    }
}
