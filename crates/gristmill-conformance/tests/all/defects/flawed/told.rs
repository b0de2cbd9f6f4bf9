//! What is answered, changed after the store inside has said it; and what is known
//! to one process only.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gristmill_core::{
    Action, Became, Claim, ExtendAnswer, Operation, Outcome, PutAnswer, PutReport, PutRequest,
    QueueName, QueueStats, Refusal, Result, Selection, SettleAnswer, Settlement, Store, TaskId,
};

use super::{Defect, Flawed, lock};

/// How long a cache of keys is believed.
const CACHED: Duration = Duration::from_millis(400);

impl Flawed {
    /// What is answered from a cache, without a look at the store.
    pub(super) fn cached_answer(&self, request: &PutRequest) -> Option<PutReport> {
        let [task] = request.tasks.as_slice() else { return None };
        if !self.has(Defect::AnswersFromACache) || task.id.is_some() {
            return None;
        }
        let place = (request.queue.to_string(), task.key.clone()?);
        let (id, when) = lock(&self.shared.cache).get(&place).copied()?;
        (when.elapsed() < CACHED).then(|| PutReport {
            answers: vec![PutAnswer::Duplicate { id, run_at: None, source: None }],
        })
    }

    /// What goes wrong with the answers to a put.
    pub(super) async fn misspeak_put(
        &self,
        request: &PutRequest,
        report: &mut PutReport,
    ) -> Result<()> {
        match self.defect {
            Some(Defect::AnswersOutOfOrder) => report.answers.reverse(),
            Some(Defect::AcceptsOtherPayloadUnderId) => {
                for answer in &mut report.answers {
                    if let PutAnswer::Refused(Refusal::IdReused { first }) = answer {
                        let (id, run_at, source) = (*first, None, None);
                        *answer = PutAnswer::Duplicate { id, run_at, source };
                    }
                }
            }
            Some(Defect::AnswersFromACache) => {
                for (answer, task) in report.answers.iter().zip(&request.tasks) {
                    if let (PutAnswer::Enqueued { id }, Some(key)) = (answer, &task.key) {
                        let place = (request.queue.to_string(), key.clone());
                        lock(&self.shared.cache).insert(place, (*id, Instant::now()));
                    }
                }
            }
            Some(Defect::LosesEveryFortieth) => {
                let enqueued = report.answers.iter().filter(|answer| answer.is_enqueued());
                let ids: Vec<TaskId> = enqueued.filter_map(PutAnswer::id).collect();
                for id in ids {
                    if self.shared.puts.fetch_add(1, Ordering::SeqCst) % 40 == 39 {
                        self.drop_task(id).await?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn drop_task(&self, id: TaskId) -> Result<()> {
        let operation = Operation {
            action: Action::Cancel,
            selection: Selection::Ids(vec![id]),
            limit: 1,
            by: "nobody".to_owned(),
            note: None,
            start: gristmill_core::Start::Now,
        };
        self.inner().operate(operation).await.map(drop)
    }

    /// What goes wrong with what a claim was given.
    pub(super) async fn misspeak_claim(&self, claim: &mut Claim) -> Result<()> {
        match self.defect {
            Some(Defect::FencingNumberFalls) => {
                claim.tasks.iter_mut().for_each(|task| task.claims = task.attempt);
            }
            Some(Defect::AttemptsFromNothing) => {
                claim
                    .tasks
                    .iter_mut()
                    .for_each(|task| task.attempt = task.attempt.saturating_sub(1));
            }
            // Half of it was asked for.
            Some(Defect::ShortensLeases) => claim.lease *= 2,
            Some(Defect::SlotsFromOne) => {
                claim.tasks.iter_mut().for_each(|task| task.slot = task.slot.map(|slot| slot + 1));
            }
            Some(Defect::ReversesBatches) => claim.tasks.reverse(),
            Some(Defect::PassesTheFrontBy) if claim.tasks.len() > 1 => {
                let front = claim.tasks.remove(0);
                let outcome = Outcome::Release { at: None, started: false };
                self.inner().settle(vec![Settlement::new(front.id, claim.token, outcome)]).await?;
            }
            Some(Defect::GivesOutTwice) => {
                let mut last = lock(&self.shared.given);
                let again = last.take();
                if let Some(task) = claim.tasks.first() {
                    *last = Some((claim.queue.clone(), task.clone()));
                }
                if let Some((queue, task)) = again
                    && queue == claim.queue
                    && claim.tasks.iter().all(|own| own.id != task.id)
                {
                    claim.tasks.push(task);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What goes wrong with the answer to a settlement.
    pub(super) fn misspeak_settlement(&self, answer: &mut SettleAnswer) {
        if self.has(Defect::RecordsTheGone) && *answer == SettleAnswer::Gone {
            *answer = SettleAnswer::Recorded { became: Became::Done, follow_ups: Vec::new() };
        }
    }

    pub(super) fn misspeak_extension(&self, answer: &mut ExtendAnswer) {
        if self.has(Defect::ExtendsTheLost) && *answer == ExtendAnswer::LeaseLost {
            *answer = ExtendAnswer::Extended { cancelled: Vec::new(), lost: Vec::new() };
        }
    }

    pub(super) fn miscount(&self, stats: &mut [QueueStats]) {
        for queue in stats {
            match self.defect {
                Some(Defect::CountsDoneTwice) => queue.counters.done *= 2,
                Some(Defect::ForgetsToCountDuplicates) => queue.counters.duplicate = 0,
                _ => {}
            }
        }
    }

    /// Whether this process stopped the queue, where no other knows of it.
    pub(super) fn paused_here(&self, queue: &QueueName) -> bool {
        self.has(Defect::PausesOneProcess) && lock(&self.paused).contains(queue)
    }

    pub(super) fn pause_here(&self, queue: &QueueName, paused: bool) {
        let mut stopped = lock(&self.paused);
        if paused {
            stopped.insert(queue.clone());
        } else {
            stopped.remove(queue);
        }
    }

    /// Answers what is recorded with the next call.
    pub(super) async fn settle_later(
        &self,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<SettleAnswer>> {
        let simple = settlements.iter().all(|one| {
            one.outcome == Outcome::Done
                && one.follow_ups.is_empty()
                && lock(&self.shared.tokens).get(&one.id) == Some(&one.token)
        });
        for one in &settlements {
            if !simple || self.inner().get(one.id).await?.is_none_or(|task| task.lease.is_none()) {
                return self.inner().settle(settlements).await;
            }
        }
        let done = SettleAnswer::Recorded { became: Became::Done, follow_ups: Vec::new() };
        let answers = vec![done; settlements.len()];
        lock(&self.unsettled).extend(settlements);
        Ok(answers)
    }

    /// Every call first records what this handle has only acknowledged.
    pub(super) async fn settle_the_unsettled(&self) -> Result<()> {
        let unsettled = std::mem::take(&mut *lock(&self.unsettled));
        if !unsettled.is_empty() {
            self.inner().settle(unsettled).await?;
        }
        Ok(())
    }

    /// Looks for leases that ran out, and a moment later takes the tasks back from
    /// whoever has them then.
    pub(super) async fn reclaim_unguarded(&self) -> Result<()> {
        let now = gristmill_core::Clock::now(self.shared.clock.as_ref());
        let expired = self.processing().await?;
        let expired = expired
            .into_iter()
            .filter(|task| task.lease.as_ref().is_some_and(|lease| lease.until <= now));
        let expired: Vec<_> = expired.collect();
        if expired.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        for task in expired {
            self.give_back(&task).await?;
        }
        Ok(())
    }
}
