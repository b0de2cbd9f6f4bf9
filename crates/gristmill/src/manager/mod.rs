//! The manager: decides how many processors serve which queue.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use gristmill::{Mill, TaskType, manager::Manager, worker::Worker};
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Mail;
//! # impl TaskType for Mail { const QUEUE: &'static str = "mails"; }
//! # async fn example(mill: Mill) -> Result<(), gristmill::Error> {
//! mill.declare::<Mail>().drain_within(Duration::from_secs(60)).await?;
//! let worker = Worker::new(&mill)
//!     .handle(|_: Mail| async { Ok::<(), String>(()) })
//!     .processors(8)
//!     .manager(Manager::new(&mill));
//! # worker.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! One leads at a time, elected through the store; the others wait for its
//! place. The leader reads the queues' numbers and the workers' reports, asks
//! [a pure function](gristmill_core::policy::assignment) what to do, and
//! publishes it with its term. Workers follow; where they do not hear from it
//! they rotate on their own.

mod gauge;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::policy::assignment::{Hands, Plan, QueueLoad, decide};
use gristmill_core::{Assignment, Clock, Published, Share, StoreError, Timestamp, WorkerId};
use gristmill_text::ControlPlane;

use crate::outage::{Outage, Part};
use crate::pause::Pause;
use crate::timer::Timer;
use crate::{Error, Mill};
use gauge::Gauge;

/// How often the leader decides.
pub const EVERY: Duration = Duration::from_secs(2);
/// Longest time between two decisions: workers believe a word that is renewed.
pub const EVERY_MAX: Duration = Duration::from_secs(5);
/// How long the store may take to hear that the role is given up.
const FAREWELL: Duration = Duration::from_secs(1);
/// A worker that was silent for longer is not counted on; it reports every
/// three seconds.
const SILENT: Duration = Duration::from_secs(10);

/// What one look came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagerLook {
    /// This one leads, and published this.
    Leads {
        /// Its term.
        term: u64,
        /// Its word. Processors that are not named rotate.
        shares: Vec<Share>,
    },
    /// Another one leads.
    Waits {
        /// The leader.
        leader: WorkerId,
        /// Its term.
        term: u64,
    },
    /// It led, but another one took over before it could publish.
    Deposed {
        /// The term of the new one.
        term: u64,
    },
}

/// Decides for a store's workers, while it leads.
#[must_use = "a manager works when it is run"]
#[derive(Debug)]
pub struct Manager {
    mill: Mill,
    timer: Timer,
    every: Duration,
    hold: Option<Duration>,
    who: Option<WorkerId>,
    /// What a leader remembers; forgotten with the leadership.
    memory: Option<Memory>,
}

#[derive(Debug)]
struct Memory {
    term: u64,
    plan: Plan,
    gauge: Gauge,
}

impl Manager {
    /// A manager of this mill's workers.
    pub fn new(mill: &Mill) -> Self {
        let (mill, timer) = (mill.clone(), Timer::default());
        Manager { mill, timer, every: EVERY, hold: None, who: None, memory: None }
    }

    /// How often it decides: every two seconds unless said, and at least every
    /// five.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every.clamp(Duration::from_millis(10), EVERY_MAX);
        self
    }

    /// How long its leadership holds unless renewed: how long the others wait
    /// for one that died. Five times [`Manager::every`] unless said.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Where time comes from; the machine unless said. Rates are measured by it,
    /// and it says when to decide again: the store's clock decides who leads.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.timer = Timer::by(clock);
        self
    }

    /// Decides once, if it leads or nobody does. For tests, which move the
    /// clock themselves; [`Manager::run`] does this by itself.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn look(&mut self) -> Result<ManagerLook, Error> {
        Ok(self.look_at_store().await?)
    }

    async fn look_at_store(&mut self) -> Result<ManagerLook, StoreError> {
        let store = self.mill.store();
        let who = match &self.who {
            Some(who) => who.clone(),
            None => self.who.insert(WorkerId::random()?).clone(),
        };
        let hold = self.hold.unwrap_or(self.every * 5).max(self.every * 2);
        let lead = self.ask(store.campaign(MANAGER, &who, hold)).await?;
        if !lead.mine {
            if self.memory.take().is_some() {
                tracing::warn!(leader = %lead.leader, "another manager leads now");
            }
            return Ok(ManagerLook::Waits { leader: lead.leader, term: lead.term });
        }
        let mut memory = match self.memory.take() {
            Some(memory) if memory.term == lead.term => memory,
            _ => {
                tracing::info!(term = lead.term, "this manager leads");
                // What the one before decided stays until there is a reason.
                let before = self.ask(store.assignment()).await?;
                let before = before.map_or_else(Vec::new, |word| word.shares);
                Memory { term: lead.term, plan: Plan::of(before), gauge: Gauge::default() }
            }
        };
        let published = self.lead(&mut memory).await;
        if let Ok(Published::StaleTerm { current }) = published {
            tracing::warn!(term = memory.term, current, "another manager leads now");
            return Ok(ManagerLook::Deposed { term: current });
        }
        let look = ManagerLook::Leads { term: memory.term, shares: memory.plan.shares.clone() };
        self.memory = Some(memory);
        published.map(|_| look)
    }

    /// Asks the store one thing.
    async fn ask<T>(&self, answer: impl Future<Output = T>) -> T {
        self.mill.outage().patiently(&self.timer, Some(Part::Manager), answer).await
    }

    /// Decides and publishes. What was not published is not remembered.
    async fn lead(&self, memory: &mut Memory) -> Result<Published, StoreError> {
        let (loads, hands) = self.read(&mut memory.gauge).await?;
        let plan = decide(&loads, &hands, &memory.plan);
        let (term, shares) = (memory.term, plan.shares.clone());
        let word = Assignment { term, shares, published_at: Timestamp::EPOCH };
        let published = self.ask(self.mill.store().publish_assignment(word)).await?;
        if published == Published::Accepted {
            tell(&memory.plan, &plan);
            memory.plan = plan;
        }
        Ok(published)
    }

    /// The queues and the workers as the decision wants them.
    async fn read(&self, gauge: &mut Gauge) -> Result<(Vec<QueueLoad>, Vec<Hands>), StoreError> {
        let store = self.mill.store();
        let (stats, queues) = (self.ask(store.stats()).await?, self.ask(store.queues()).await?);
        let workers = self.ask(store.workers()).await?;
        gauge.read(&stats, &workers, self.timer.clock().monotonic());
        let mut loads = Vec::new();
        for stats in &stats {
            let Some(queue) = queues.iter().find(|queue| queue.name == stats.queue) else {
                continue;
            };
            let settings = &queue.settings;
            loads.push(QueueLoad {
                queue: stats.queue.clone(),
                ready: stats.ready,
                arriving: gauge.arriving(&stats.queue),
                run_time: gauge.run_time(&stats.queue),
                waited: stats.oldest_ready.unwrap_or_default(),
                paused: stats.paused,
                min: settings.processors_min,
                max: settings.processors_max,
                weight: settings.processors_weight,
                drain_within: settings.drain_within,
            });
        }
        let heard = workers.into_iter().filter(|w| w.silent_for < SILENT && !w.report.stopping);
        let hands = heard.map(|worker| Hands {
            worker: worker.report.id,
            queues: worker.report.queues,
            processors: u32::try_from(worker.report.processors.len()).unwrap_or(u32::MAX),
        });
        Ok((loads, hands.collect()))
    }

    /// Decides again and again until `shutdown` ends; then it gives the role
    /// up, so that another one need not wait.
    ///
    /// # Errors
    /// When the store was closed by this program. A store that goes away is
    /// waited for.
    pub async fn run(mut self, shutdown: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut pause = Pause::random()?;
        let outage = self.mill.outage().clone();
        let timer = self.timer.clone();
        loop {
            // A look may be dropped: what it published stands.
            let looked = tokio::select! {
                biased;
                () = &mut shutdown => break,
                looked = self.look_at_store() => looked,
            };
            let wait = match looked {
                Ok(_) => {
                    pause.over();
                    outage.answered(Part::Manager, &timer);
                    self.every
                }
                Err(StoreError::Closed) => return Err(StoreError::Closed.into()),
                Err(error) => {
                    if Outage::means(&error) {
                        outage.failed(Part::Manager, &error, timer.now());
                    } else {
                        tracing::warn!(error = %error.whole(), "the manager cannot decide; it tries again");
                    }
                    pause.next()
                }
            };
            tokio::select! {
                () = &mut shutdown => break,
                () = outage.patiently(&timer, None, timer.sleep(wait)) => {}
            }
        }
        outage.leave(&[Part::Manager]);
        let Some(who) = &self.who else { return Ok(()) };
        let store = self.mill.store();
        match timer.within(FAREWELL, store.resign(MANAGER, who)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %error.whole(), "the role was not given up; it runs out")
            }
            None => tracing::debug!("the store does not answer; the role runs out"),
        }
        Ok(())
    }
}

/// Says what changed.
fn tell(before: &Plan, plan: &Plan) {
    let queues = before.shares.iter().chain(&plan.shares).map(|share| &share.queue);
    let queues: std::collections::BTreeSet<_> = queues.collect();
    for queue in queues {
        let (had, has) = (before.given(queue), plan.given(queue));
        if had != has {
            tracing::info!(%queue, had, has, "the manager moves processors");
        }
    }
}
