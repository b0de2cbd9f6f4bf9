//! A finder's run under its schedule's lease: one process at a time.

use std::time::{Duration, Instant};

use gristmill_core::policy::reclaim_guard::heartbeat;
use gristmill_core::{
    Fire, FireAnswer, Leadership, QueueName, Schedule, ScheduleName, StoreError, WorkerId,
};
use gristmill_core::{Timestamp, policy::next_fire::FireTimes};
use gristmill_text::ControlPlane;
use tokio::task::JoinSet;

use super::engine::tell_early;
use super::finder::{Find, Finding};
use crate::Mill;
use crate::timer::Timer;

/// A finder that ran ahead of the store's clock runs again after this long at
/// most.
const EARLY_AGAIN: Duration = Duration::from_secs(5);

/// A finder that is due.
#[derive(Clone)]
pub(super) struct DueFind {
    pub(super) mill: Mill,
    pub(super) name: ScheduleName,
    pub(super) queue: QueueName,
    pub(super) times: FireTimes,
    pub(super) find: Find,
    pub(super) who: WorkerId,
    /// How long the lease holds unless renewed.
    pub(super) hold: Duration,
    /// What the scheduler's clock said.
    pub(super) now: Timestamp,
    pub(super) timer: Timer,
    /// Somebody wants it now: it is due, and decides nothing.
    pub(super) by_hand: bool,
}

/// How a finder's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindEnd {
    /// It ran, and its instant is decided.
    Ran { put: u64 },
    /// Another process has the lease.
    Elsewhere,
    /// Another process had it, and decided the instant.
    Decided,
    /// The lease went to another process while it ran; it was dropped.
    Lost,
}

impl DueFind {
    /// Runs the finder to its end if the lease can be had.
    pub(super) async fn run(self) -> Result<FindEnd, StoreError> {
        let store = self.mill.store();
        let role = format!("schedule/{}", self.name);
        let asked = self.timer.now();
        if !self.campaign(&role).await?.mine {
            return Ok(FindEnd::Elsewhere);
        }
        // Whoever had the lease before may have decided this instant.
        let due = if self.by_hand { Some(self.now) } else { self.still_due().await? };
        let Some(instant) = due else {
            store.resign(&role, &self.who).await?;
            return Ok(FindEnd::Decided);
        };
        let finding =
            Finding::new(self.mill.clone(), self.name.clone(), self.queue.clone(), instant);
        if !self.guard(&role, asked + self.hold, &finding).await {
            tracing::warn!(schedule = %self.name, "the finder lost its lease and was dropped");
            return Ok(FindEnd::Lost);
        }
        finding.tell();
        if self.by_hand {
            store.resign(&role, &self.who).await?;
            return Ok(FindEnd::Ran { put: finding.found() });
        }
        // Decided after the run: if this process dies in it, another one finds
        // again.
        let fire = Fire { schedule: self.name.clone(), instant, tasks: Vec::new(), by_hand: false };
        let decided = store.fire(fire).await?;
        store.resign(&role, &self.who).await?;
        if let FireAnswer::NotYet(ahead) = decided {
            tell_early(&self.name, ahead);
            // Finding again at once would find the same, until it is time.
            self.timer.sleep(ahead.min(EARLY_AGAIN)).await;
        }
        Ok(FindEnd::Ran { put: finding.found() })
    }

    async fn campaign(&self, role: &str) -> Result<Leadership, StoreError> {
        self.mill.store().campaign(role, &self.who, self.hold).await
    }

    async fn still_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let schedules = self.mill.store().schedules().await?;
        let known = schedules.into_iter().find(|known| known.declared.name == self.name);
        Ok(known.and_then(|known| self.last_due(&known)))
    }

    /// The later of what the rule says and what was asked for by hand: a run
    /// finds all that is due, and decides both.
    fn last_due(&self, schedule: &Schedule) -> Option<Timestamp> {
        let due = self.times.due(schedule.decided_until, self.now, schedule.declared.missed);
        let by_rule = due.fires.last().copied().filter(|_| !schedule.paused);
        by_rule.max(schedule.asked())
    }

    /// Runs the code and renews the lease beside it. Returns whether the lease
    /// was ours to the end.
    async fn guard(&self, role: &str, mut until: Instant, finding: &Finding) -> bool {
        // A task of its own: a finder that panics or blocks does not take the
        // renewing with it. Dropping the set drops the finder.
        let mut running = JoinSet::new();
        running.spawn((self.find.run)(finding.clone()));
        let mut over = std::pin::pin!(self.timer.sleep(self.find.timeout));
        loop {
            let asked = tokio::select! {
                // One that hangs would hold the lease, and its schedule, for good.
                () = &mut over => {
                    tracing::error!(
                        schedule = %self.name, timeout = ?self.find.timeout,
                        "the finder did not end in time and was dropped; it finds again at the \
                         next fire"
                    );
                    return self.timer.now() < until;
                }
                ended = running.join_next() => {
                    self.tell(ended, finding);
                    return self.timer.now() < until;
                }
                () = self.timer.sleep(heartbeat(self.hold)) => self.timer.now(),
            };
            let left = until.saturating_duration_since(asked);
            match self.timer.within(left, self.campaign(role)).await {
                Some(Ok(lead)) if lead.mine => until = asked + self.hold,
                Some(Err(error)) if self.timer.now() < until => {
                    tracing::warn!(schedule = %self.name, error = %error.whole(), "the lease was not renewed yet");
                }
                _ => return false,
            }
        }
    }

    fn tell(
        &self,
        ended: Option<Result<Result<(), String>, tokio::task::JoinError>>,
        finding: &Finding,
    ) {
        let schedule = &self.name;
        match ended {
            // Told of as such: the finder ended because there was no room.
            Some(Ok(Err(_))) if finding.met_full_queue() => {}
            Some(Ok(Err(error))) => {
                tracing::warn!(%schedule, error, "the finder failed; it finds again at the next fire");
            }
            Some(Err(error)) => {
                tracing::error!(%schedule, %error, "the finder panicked; it finds again at the next fire");
            }
            Some(Ok(Ok(()))) | None => {}
        }
    }
}
