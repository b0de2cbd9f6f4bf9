//! One look at the schedules: makes the fires that are due, and says when to
//! look again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use gristmill_core::policy::next_fire::FireTimes;
use gristmill_core::{
    Fire, FireAnswer, NewTask, PutAnswer, Refusal, Rule, Schedule, ScheduleDeclaration,
    ScheduleName, StoreError, Timestamp, WorkerId,
};

use super::finder::Find;
use super::lease::DueFind;
use super::{FIRE_HEADER, SCHEDULE_HEADER, ScheduleReport};
use crate::Mill;
use crate::outage::Part;
use crate::timer::Timer;

/// What a scheduler remembers between two looks. Nothing of it decides: the
/// store does.
pub(super) struct Engine {
    pub(super) mill: Mill,
    pub(super) timer: Timer,
    pub(super) who: WorkerId,
    pub(super) hold: Duration,
    pub(super) finders: HashMap<ScheduleName, Find>,
    pub(super) report: ScheduleReport,
    /// Rules that were read, so that an idle look costs one read of the store.
    read: HashMap<ScheduleName, (Rule, String, Option<FireTimes>)>,
    /// Schedules whose queue was full at the last look.
    held_back: HashSet<ScheduleName>,
}

/// What one look found.
#[derive(Default)]
pub(super) struct Look {
    /// The earliest fire ahead, and how far that is.
    pub(super) next: Option<(Timestamp, Duration)>,
    /// Finders to be run.
    pub(super) finds: Vec<DueFind>,
    /// A fire waits: for room in its queue, or for the store's clock.
    pub(super) waits: bool,
}

impl Engine {
    pub(super) fn new(
        mill: Mill,
        timer: Timer,
        finders: HashMap<ScheduleName, Find>,
        hold: Duration,
    ) -> Result<Self, StoreError> {
        Ok(Engine {
            mill,
            timer,
            who: WorkerId::random()?,
            hold,
            finders,
            report: ScheduleReport::default(),
            read: HashMap::new(),
            held_back: HashSet::new(),
        })
    }

    /// Makes all fires that are due. Finders are only named: they may take
    /// long, and other schedules must not wait for them.
    ///
    /// # Errors
    /// When the store does not answer. What was fired before stays fired, and
    /// looking again does not fire it twice.
    pub(super) async fn look(&mut self) -> Result<Look, StoreError> {
        let schedules = self.ask(self.mill.store().schedules()).await?;
        // Not this machine's: a schedule would wait for a client's clock that is wrong.
        let now = self.ask(self.mill.now(self.timer.clock().as_ref())).await?;
        let mut look = Look::default();
        self.read.retain(|name, _| schedules.iter().any(|known| known.declared.name == *name));
        for schedule in &schedules {
            let declared = &schedule.declared;
            let find = self.finders.get(&declared.name).cloned();
            // By hand a finder runs also while its schedule is paused.
            let asked = find.is_some() && schedule.asked().is_some();
            if schedule.paused && !asked {
                continue;
            }
            if find.is_none() && declared.payload.is_none() {
                // Its finder lives in another program.
                continue;
            }
            let Some(times) = self.times(schedule) else { continue };
            let due = times.due(schedule.decided_until, now, declared.missed);
            let next = due.next.map(|at| (at, at.since(now)));
            look.next = [look.next, next].into_iter().flatten().min();
            if due.fires.is_empty() && !asked {
                continue;
            }
            match (find, declared.task()) {
                (Some(find), _) => look.finds.push(DueFind {
                    mill: self.mill.clone(),
                    name: declared.name.clone(),
                    queue: declared.queue.clone(),
                    times,
                    find,
                    who: self.who.clone(),
                    hold: self.hold,
                    now,
                    timer: self.timer.clone(),
                    by_hand: false,
                }),
                (None, Some(task)) => {
                    look.waits |= self.fire_all(schedule, &task, &due.fires).await?;
                }
                (None, None) => {}
            }
        }
        Ok(look)
    }

    /// Asks the store one thing.
    async fn ask<T>(&self, answer: impl Future<Output = T>) -> T {
        self.mill.outage().patiently(&self.timer, Some(Part::Schedules), answer).await
    }

    /// Makes these fires, oldest first. Returns whether some wait.
    async fn fire_all(
        &mut self,
        schedule: &Schedule,
        task: &NewTask,
        fires: &[Timestamp],
    ) -> Result<bool, StoreError> {
        let name = &schedule.declared.name;
        for instant in fires {
            let made = match self.has_room(schedule, *instant).await {
                Ok(false) => return Ok(true),
                Ok(true) => self.fire(schedule, task, *instant).await,
                Err(error) => Err(error),
            };
            match made {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) => {
                    if error.is_retryable() || !error.wrote_nothing() || error == StoreError::Closed
                    {
                        return Err(error);
                    }
                    // Only this schedule is in trouble; the others go on.
                    tracing::error!(schedule = %name, error = %error.whole(), "a schedule cannot fire");
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Whether the queue can take a task. Without room the fire is not made,
    /// which leaves it to the missed-fire policy: once there is room, `once`
    /// and `all` make it up, and `skip` lets it go.
    async fn has_room(&mut self, schedule: &Schedule, at: Timestamp) -> Result<bool, StoreError> {
        let declared = &schedule.declared;
        let stats = self.ask(self.mill.store().stats()).await?;
        let queue = stats.iter().find(|queue| queue.queue == declared.queue);
        let room = queue.is_none_or(gristmill_core::QueueStats::can_accept);
        if room {
            self.held_back.remove(&declared.name);
        } else if self.held_back.insert(declared.name.clone()) {
            self.report.missed += 1;
            tracing::warn!(
                schedule = %declared.name, queue = %declared.queue, %at,
                "the queue is full: the schedule missed its fire"
            );
        }
        Ok(room)
    }

    /// Makes one fire. Returns whether the instant is decided.
    async fn fire(
        &mut self,
        schedule: &Schedule,
        task: &NewTask,
        instant: Timestamp,
    ) -> Result<bool, StoreError> {
        let name = &schedule.declared.name;
        let fire = Fire {
            schedule: name.clone(),
            instant,
            tasks: vec![fired(&self.mill, &schedule.declared, task.clone(), instant)],
            by_hand: false,
        };
        match self.ask(self.mill.store().fire(fire)).await? {
            FireAnswer::Fired(answers) => self.tell_fired(name, instant, &answers),
            FireAnswer::Overlapped(id) => {
                self.report.overlapped += 1;
                tracing::info!(schedule = %name, %instant, %id, "passed over: the one before stands");
            }
            // Somebody else was first, or changed its mind since we looked.
            FireAnswer::AlreadyDecided
            | FireAnswer::Paused
            | FireAnswer::Asked
            | FireAnswer::Unknown => {}
            FireAnswer::NotYet(ahead) => {
                tell_early(name, ahead);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn tell_fired(&mut self, name: &ScheduleName, at: Timestamp, answers: &[PutAnswer]) {
        for answer in answers {
            match answer {
                PutAnswer::Refused(Refusal::QueueFull { .. }) => {
                    self.report.missed += 1;
                    tracing::warn!(schedule = %name, %at, "the queue is full: the fire was missed");
                }
                PutAnswer::Refused(why) => {
                    tracing::error!(schedule = %name, %at, %why, "a schedule's task was refused");
                }
                _ => {
                    self.report.fired += 1;
                    tracing::debug!(schedule = %name, %at, "fired");
                }
            }
        }
    }

    /// The schedule's rule, read once. Nothing when it cannot be read, which a
    /// store only keeps if a newer program wrote it.
    fn times(&mut self, schedule: &Schedule) -> Option<FireTimes> {
        let declared = &schedule.declared;
        if let Some((rule, zone, times)) = self.read.get(&declared.name)
            && *rule == declared.rule
            && *zone == declared.zone
        {
            return times.clone();
        }
        let times = FireTimes::new(&declared.rule, &declared.zone)
            .inspect_err(|error| tracing::error!(schedule = %declared.name, %error, "not served"))
            .ok();
        let entry = (declared.rule.clone(), declared.zone.clone(), times.clone());
        self.read.insert(declared.name.clone(), entry);
        times
    }
}

/// Only the store's clock decides, so a scheduler whose clock is ahead waits
/// for it. A few milliseconds are normal between two machines.
pub(super) fn tell_early(schedule: &ScheduleName, ahead: Duration) {
    if ahead > Duration::from_secs(1) {
        tracing::warn!(%schedule, ?ahead, "this clock is ahead of the store's; the fire waits");
    }
}

/// The task of one fire.
pub(super) fn fired(
    mill: &Mill,
    declared: &ScheduleDeclaration,
    mut task: NewTask,
    instant: Timestamp,
) -> NewTask {
    task.headers.insert(SCHEDULE_HEADER.to_owned(), declared.name.to_string());
    task.headers.insert(FIRE_HEADER.to_owned(), instant.to_string());
    mill.before_put(declared.queue.as_str(), &mut task);
    task
}
