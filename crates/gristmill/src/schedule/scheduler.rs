//! The scheduler: looks at the store's schedules and makes them fire.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Clock, ScheduleDeclaration, ScheduleName, StoreError, Timestamp};
use tokio::task::JoinSet;

use super::engine::Engine;
use super::lease::FindEnd;
use super::{NewSchedule, finder::Find};
use crate::outage::{Outage, Part};
use crate::pause::Pause;
use crate::timer::Timer;
use crate::worker::{Force, STOP_WITHIN};
use crate::{Error, Mill};

/// Longest wait between two looks: how long a schedule that another process
/// declares, changes or resumes may go unnoticed.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How long a fire waits before it asks again for room in its queue.
const ROOM_AGAIN: Duration = Duration::from_secs(1);
/// How long a finder's lease holds unless renewed.
const HOLD: Duration = Duration::from_secs(30);
/// What a scheduler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ScheduleReport {
    /// Tasks it put.
    pub fired: u64,
    /// Fires it missed because the queue was full.
    pub missed: u64,
    /// Fires passed over because the task of the one before still stood.
    pub overlapped: u64,
    /// Runs of finders.
    pub found: u64,
}

/// Makes schedules fire: those it is given and all others of the store that
/// have a payload. Run as many as you like.
#[must_use = "a scheduler works when it is run"]
pub struct Scheduler {
    mill: Mill,
    timer: Timer,
    schedules: Vec<NewSchedule>,
    /// Those that the store has not taken yet.
    undeclared: Vec<ScheduleDeclaration>,
    finders: HashMap<ScheduleName, Find>,
    hold: Duration,
    stop_within: Duration,
    force: Force,
    engine: Option<Engine>,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("schedules", &self.schedules).finish_non_exhaustive()
    }
}

impl Scheduler {
    /// A scheduler of this mill's schedules.
    pub fn new(mill: &Mill) -> Self {
        Scheduler {
            mill: mill.clone(),
            timer: Timer::default(),
            schedules: Vec::new(),
            undeclared: Vec::new(),
            finders: HashMap::new(),
            hold: HOLD,
            stop_within: STOP_WITHIN,
            force: Force::default(),
            engine: None,
        }
    }

    /// Declares this schedule at the start, and runs its finder if it has one.
    pub fn schedule(mut self, schedule: NewSchedule) -> Self {
        self.schedules.push(schedule);
        self
    }

    /// Where time comes from, and by which it waits; the machine unless said. Use
    /// the store's own.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.timer = Timer::by(clock);
        self
    }

    /// How long a finder's lease holds unless renewed: how long others wait
    /// for a process that died while it was finding. 30 s unless said.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold.max(Duration::from_millis(100));
        self
    }

    /// How long finders may go on after the stop was asked for:
    /// [`STOP_WITHIN`](crate::worker::STOP_WITHIN) unless said. Then they are
    /// dropped.
    pub fn stop_within(mut self, limit: Duration) -> Self {
        self.stop_within = limit;
        self
    }

    /// What ends the patience of a graceful stop: a second signal.
    #[must_use]
    pub fn force(&self) -> Force {
        self.force.clone()
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.stop_within
    }

    /// Declares what was given and was not declared yet.
    async fn start(&mut self) -> Result<&mut Engine, Error> {
        for mut schedule in std::mem::take(&mut self.schedules) {
            let finder = schedule.take_finder();
            let (_, declaration) = schedule.declaration()?;
            if let Some(finder) = finder {
                self.mill.finders().know(declaration.name.clone(), finder.clone(), self.hold);
                self.finders.insert(declaration.name.clone(), finder);
            }
            self.undeclared.push(declaration);
        }
        while let Some(declaration) = self.undeclared.first() {
            let (store, asks) = (self.mill.store(), Some(Part::Schedules));
            let declares = store.declare_schedule(declaration.clone());
            self.mill.outage().patiently(&self.timer, asks, declares).await?;
            self.undeclared.remove(0);
        }
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let finders = std::mem::take(&mut self.finders);
                Engine::new(self.mill.clone(), self.timer.clone(), finders, self.hold)?
            }
        };
        Ok(self.engine.insert(engine))
    }

    /// Makes everything fire that is due now by the clock, runs due finders to
    /// their end, and returns the earliest fire ahead. For tests, which move
    /// the clock themselves; [`Scheduler::run`] does this by itself.
    ///
    /// # Errors
    /// When a schedule cannot be declared or the store does not answer.
    pub async fn run_due(&mut self) -> Result<Option<Timestamp>, Error> {
        let engine = self.start().await?;
        let look = engine.look().await?;
        for find in look.finds {
            if matches!(find.run().await?, FindEnd::Ran { .. }) {
                engine.report.found += 1;
            }
        }
        Ok(look.next.map(|(at, _)| at))
    }

    /// What it did so far.
    #[must_use]
    pub fn report(&self) -> ScheduleReport {
        self.engine.as_ref().map_or_else(ScheduleReport::default, |engine| engine.report)
    }

    /// Declares what was given, then makes schedules fire until `shutdown`
    /// ends. Finders that run then may finish within [`Scheduler::stop_within`];
    /// what they did not find is found later.
    ///
    /// # Errors
    /// When a schedule cannot be declared, or the store was closed by this
    /// program. A store that goes away is waited for.
    pub async fn run(
        mut self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<ScheduleReport, Error> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut finding = Finders::default();
        let (stop_within, force) = (self.stop_within, self.force.clone());
        let (outage, timer) = (self.mill.outage().clone(), self.timer.clone());
        let mut pause = Pause::random()?;
        // The store may be away already.
        let engine = loop {
            let started = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(ScheduleReport::default()),
                started = self.start() => started.map(drop),
            };
            let wait = match started {
                Ok(()) => break self.start().await?,
                Err(Error::Store(error)) if Outage::means(&error) => {
                    outage.failed(Part::Schedules, &error, timer.now());
                    pause.next()
                }
                Err(error) => return Err(error),
            };
            tokio::select! {
                () = &mut shutdown => return Ok(ScheduleReport::default()),
                () = outage.patiently(&timer, None, timer.sleep(wait)) => {}
            }
        };
        loop {
            // A look may be dropped: what it fired is decided, the rest is not.
            let looked = tokio::select! {
                biased;
                () = &mut shutdown => break,
                looked = engine.look() => looked,
            };
            let wait = match looked {
                Ok(look) => {
                    pause.over();
                    outage.answered(Part::Schedules, &timer);
                    for find in look.finds {
                        finding.start(find.name.clone(), find.run());
                    }
                    let most = if look.waits { ROOM_AGAIN } else { LOOK_AGAIN };
                    look.next.map_or(most, |(_, wait)| wait.min(most))
                }
                Err(StoreError::Closed) => return Err(StoreError::Closed.into()),
                Err(error) => {
                    if Outage::means(&error) {
                        outage.failed(Part::Schedules, &error, timer.now());
                    } else {
                        tracing::warn!(error = %error.whole(), "schedules cannot be looked at; trying again");
                    }
                    pause.next()
                }
            };
            tokio::select! {
                () = &mut shutdown => break,
                () = outage.patiently(&timer, None, timer.sleep(wait)) => {}
                ran = finding.ended(&timer) => engine.report.found += u64::from(ran),
            }
        }
        outage.leave(&[Part::Schedules]);
        engine.report.found += finding.finish(stop_within, &force, &timer).await;
        Ok(engine.report)
    }
}

/// Finders that run, each schedule's at most once.
#[derive(Default)]
struct Finders {
    running: JoinSet<Result<FindEnd, StoreError>>,
    names: HashMap<tokio::task::Id, ScheduleName>,
}

impl Finders {
    fn start(
        &mut self,
        name: ScheduleName,
        run: impl Future<Output = Result<FindEnd, StoreError>> + Send + 'static,
    ) {
        if !self.names.values().any(|running| *running == name) {
            let id = self.running.spawn(run).id();
            self.names.insert(id, name);
        }
    }

    /// Waits for one to end; returns whether it ran. Never returns while there
    /// is none.
    async fn ended(&mut self, timer: &Timer) -> bool {
        match self.running.join_next_with_id().await {
            Some(Ok((id, end))) => {
                let name = self.names.remove(&id);
                if let (Err(error), Some(schedule)) = (&end, name) {
                    tracing::warn!(%schedule, error = %error.whole(), "the store did not answer a finder");
                }
                let ran = matches!(end, Ok(FindEnd::Ran { .. }));
                if !ran {
                    // Another process has it, or the store is away: asking
                    // again at once would not help.
                    timer.sleep(ROOM_AGAIN).await;
                }
                ran
            }
            Some(Err(error)) => {
                self.names.remove(&error.id());
                tracing::error!(%error, "a finder's run ended badly");
                false
            }
            None => std::future::pending().await,
        }
    }

    /// Lets what runs finish, then drops it. Returns how many ran.
    async fn finish(mut self, within: Duration, force: &Force, timer: &Timer) -> u64 {
        let mut ran = 0;
        let all = async {
            while let Some(ended) = self.running.join_next().await {
                ran += u64::from(matches!(ended, Ok(Ok(FindEnd::Ran { .. }))));
            }
        };
        let dropped = tokio::select! {
            biased;
            () = all => false,
            () = force.said() => true,
            () = timer.sleep(within) => true,
        };
        if dropped {
            tracing::warn!("a finder did not end in time and was dropped");
        }
        ran
    }
}
