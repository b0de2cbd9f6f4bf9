//! What is asked, changed before the store inside hears of it.

use std::time::Duration;

use gristmill_core::{
    Action, ClaimRequest, Declaration, Extension, NewTask, OnDuplicate, Operation, Outcome,
    Payload, Result, SettingsPatch, Settlement, Start, Store, Unique, When,
};

use super::{Defect, Flawed};

impl Flawed {
    /// How a task that is put is misheard.
    pub(super) fn mishear_put(&self, task: &mut NewTask) {
        match self.defect {
            Some(Defect::IgnoresDelays) => task.start = Start::Now,
            Some(Defect::FoldsKeys) => {
                task.key = task.key.as_ref().map(|key| key.to_lowercase());
            }
            Some(Defect::NeverRemembersIds) => task.id = None,
            Some(Defect::DropsHeaders) => task.headers.clear(),
            Some(Defect::CutsLongPayloads) if task.payload.bytes.len() > 200 => {
                let bytes = task.payload.bytes.slice(..200);
                task.payload = Payload { bytes, encoding: task.payload.encoding };
            }
            _ => {}
        }
    }

    /// How a claim is misheard.
    pub(super) async fn mishear_claim(&self, request: &mut ClaimRequest) -> Result<()> {
        match self.defect {
            Some(Defect::IgnoresAskedLease) => request.lease = None,
            Some(Defect::ShortensLeases) => {
                let queues = self.inner().queues().await?;
                let queue = queues.iter().find(|queue| queue.name == request.queue);
                let lease = request.lease.or(queue.map(|queue| queue.settings.lease));
                request.lease = lease.map(half);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn mishear_extension(&self, extension: &mut Extension) {
        if self.has(Defect::ExtendsByHalf) {
            extension.lease = half(extension.lease);
        }
    }

    /// How the end of an attempt is misheard.
    pub(super) fn mishear_settlement(&self, settlement: &mut Settlement) {
        let at_once = || Outcome::Retry { at: When::After(Duration::ZERO), reason: None };
        let outcome = match (self.defect, &settlement.outcome) {
            (Some(Defect::FailsAtFirstError), Outcome::Error(why)) => Outcome::Fail(why.clone()),
            (Some(Defect::RetriesForEver), Outcome::Error(why)) => Outcome::Retry {
                at: When::After(Duration::from_secs(2)),
                reason: Some(why.clone()),
            },
            (Some(Defect::RetriesAtOnce), Outcome::Error(_)) => at_once(),
            (Some(Defect::RetryDoesNotCount), Outcome::Retry { at, .. }) => {
                Outcome::Release { at: Some(*at), started: false }
            }
            (Some(Defect::RetriesWhatFailed), Outcome::Fail(why)) => Outcome::Error(why.clone()),
            (Some(Defect::ReleaseLosesItsPlace), Outcome::Release { at: None, started }) => {
                Outcome::Release { at: Some(When::After(Duration::ZERO)), started: *started }
            }
            (Some(Defect::LosesReleased), Outcome::Release { .. }) => Outcome::Cancelled,
            (Some(Defect::LosesTheReason), Outcome::Error(_)) => Outcome::Error(String::new()),
            _ => return,
        };
        settlement.outcome = outcome;
    }

    /// How a queue's settings are misheard.
    pub(super) fn mishear_declaration(&self, declaration: &mut Declaration) {
        self.mishear_settings(&mut declaration.settings);
    }

    fn mishear_settings(&self, settings: &mut SettingsPatch) {
        match self.defect {
            Some(Defect::IgnoresCapacity) => settings.capacity = None,
            Some(Defect::IgnoresWindows) => settings.unique_for = None,
            Some(Defect::DoublesWindows) => {
                settings.unique_for = settings.unique_for.map(|some| some.map(|time| time * 2));
            }
            Some(Defect::IgnoresFairness) => settings.fair = None,
            Some(Defect::IgnoresRate) => {
                settings.rate = None;
                settings.burst = None;
            }
            Some(Defect::DoublesTheBurst) => {
                settings.burst = settings.burst.map(|some| some.map(|n| n * 2));
            }
            Some(Defect::IgnoresConcurrency) => settings.concurrency = None,
            Some(Defect::LimitsGroupsTogether) => settings.concurrency_per = None,
            Some(Defect::CapacityIsOneMore) => {
                settings.capacity = settings.capacity.map(|some| some.map(|n| n + 1));
            }
            Some(Defect::TakesActiveForPending) => {
                settings.unique = settings.unique.map(|_| Unique::Pending);
            }
            Some(Defect::TakesPendingForActive)
                if settings.on_duplicate.is_none_or(|what| what == OnDuplicate::Skip) =>
            {
                settings.unique = Some(Unique::Active);
            }
            Some(Defect::SkipsInsteadOfReplacing) => {
                settings.on_duplicate = None;
                settings.postpone_max = None;
            }
            _ => {}
        }
    }

    pub(super) fn mishear_operation(&self, operation: &mut Operation) {
        if self.has(Defect::ResolvesByDiscarding) && operation.action == Action::Resolve {
            operation.action = Action::Discard;
        }
    }
}

/// Half of it, as far as a lease can be that short.
fn half(lease: Duration) -> Duration {
    (lease / 2).max(Duration::from_millis(100)).min(lease)
}
