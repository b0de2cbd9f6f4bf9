//! Settlements, and what operators and schedules do, gone wrong.

use std::sync::atomic::Ordering;

use gristmill_core::{
    Action, Became, Fire, FireAnswer, FollowUp, Operation, OperationAnswer, OperationReport,
    Outcome, Payload, PutAnswer, PutRequest, QueueStats, Refusal, Result, Selection, SettleAnswer,
    Settlement, State, Store, TaskId, When,
};

use super::{Defect, Flawed, give_way, lock};

impl Flawed {
    pub(super) async fn flawed_settle(
        &self,
        mut settlements: Vec<Settlement>,
    ) -> Result<Vec<SettleAnswer>> {
        if self.has(Defect::ForgetsResults) {
            for settlement in &mut settlements {
                let fits = |r: &gristmill_core::Payload| self.limits().refuse_result(r).is_none();
                if settlement.result.as_ref().is_some_and(fits) {
                    settlement.result = None;
                }
            }
        }
        if settlements.len() > self.limits().settlements {
            return self.inner().settle(settlements).await;
        }
        for settlement in &mut settlements {
            self.mishear_settlement(settlement);
            self.spoil(settlement).await?;
            if let (true, Some(value)) = (self.has(Defect::KeepsStaleResults), &settlement.result) {
                lock(&self.shared.returned).insert(settlement.id, value.clone());
            }
            let fits = |value: &Payload| self.limits().refuse_result(value).is_none();
            if self.has(Defect::ForgetsResults) && settlement.result.as_ref().is_some_and(fits) {
                settlement.result = None;
            }
        }
        let given = settlements.clone();
        let mut answers = match self.defect {
            Some(Defect::AsksFollowUpsForRoom) => self.settle_with_room(settlements).await?,
            Some(Defect::LosesRefusedFollowUps) => self.settle_without_refused(settlements).await?,
            Some(Defect::TearsSettlementsApart) => self.settle_in_two_steps(settlements).await?,
            Some(Defect::LosesTheSecondFollowUp) => self.settle_with_one(settlements).await?,
            Some(Defect::PutsFollowUpsFirst) => self.settle_after_putting(settlements).await?,
            Some(Defect::SettlesBeforeCommit) => self.settle_later(settlements).await?,
            _ => self.inner().settle(settlements).await?,
        };
        for (answer, settlement) in answers.iter_mut().zip(given) {
            self.twist(answer, settlement).await?;
            self.misspeak_settlement(answer);
        }
        Ok(answers)
    }

    /// What goes wrong before the store inside is asked.
    async fn spoil(&self, settlement: &mut Settlement) -> Result<()> {
        match self.defect {
            Some(Defect::SettlesWithoutToken) => {
                let current = lock(&self.shared.tokens).get(&settlement.id).copied();
                settlement.token = current.unwrap_or(settlement.token);
            }
            Some(Defect::BurnsReleasedAttempts) => {
                if let Outcome::Release { at, .. } = settlement.outcome
                    && let Some(task) = self.inner().get(settlement.id).await?
                {
                    let at = at.unwrap_or(When::At(task.run_at));
                    settlement.outcome = Outcome::Retry { at, reason: None };
                }
            }
            Some(Defect::DropsReturnsWhenFull) => {
                let returns = !matches!(
                    settlement.outcome,
                    Outcome::Done | Outcome::Fail(_) | Outcome::Cancelled
                );
                if returns
                    && let Some(task) = self.inner().get(settlement.id).await?
                    && self.full(&task.queue).await?.is_some()
                {
                    settlement.outcome = Outcome::Cancelled;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What goes wrong with its answer.
    async fn twist(&self, answer: &mut SettleAnswer, settlement: Settlement) -> Result<()> {
        if let SettleAnswer::Recorded { became: Became::Done, .. } = answer {
            self.shared.done.fetch_add(1, Ordering::SeqCst);
            if let Some(id) = lock(&self.shared.ids).remove(&settlement.id) {
                *lock(&self.shared.forgotten).entry(id).or_default() += 1;
            }
        }
        match self.defect {
            Some(Defect::RecordsRepeats) if *answer == SettleAnswer::AlreadyRecorded => {
                *answer = SettleAnswer::Recorded { became: Became::Done, follow_ups: Vec::new() };
            }
            Some(Defect::PutsRefusedFollowUps) if !answer.is_recorded() => {
                self.put_follow_ups(settlement).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn put_follow_ups(&self, settlement: Settlement) -> Result<Vec<PutAnswer>> {
        let mut answers = Vec::new();
        for follow_up in settlement.follow_ups {
            let one =
                PutRequest { queue: follow_up.queue, tasks: vec![follow_up.task], atomic: false };
            answers.extend(self.inner().put(one).await?.answers);
        }
        Ok(answers)
    }

    /// Puts the first of several follow-ups and answers for all.
    async fn settle_with_one(&self, mut settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        let counts: Vec<usize> = settlements.iter().map(|one| one.follow_ups.len()).collect();
        settlements.iter_mut().for_each(|one| one.follow_ups.truncate(1));
        let mut answers = self.inner().settle(settlements).await?;
        for (answer, count) in answers.iter_mut().zip(counts) {
            if let SettleAnswer::Recorded { follow_ups, .. } = answer
                && let Some(first) = follow_ups.first().and_then(PutAnswer::id)
            {
                let made_up =
                    (1..).map(|n| PutAnswer::Enqueued { id: TaskId(first.0 + n * 1_000_000) });
                follow_ups.extend(made_up.take(count.saturating_sub(1)));
            }
        }
        Ok(answers)
    }

    async fn settle_after_putting(
        &self,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<SettleAnswer>> {
        let mut answers = Vec::new();
        for mut settlement in settlements {
            let put = self.put_follow_ups(settlement.clone()).await?;
            settlement.follow_ups.clear();
            let mut answer = self.inner().settle(vec![settlement]).await?.remove(0);
            if let SettleAnswer::Recorded { follow_ups, .. } = &mut answer {
                *follow_ups = put;
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    async fn settle_with_room(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        let mut answers = Vec::new();
        for mut settlement in settlements {
            let mut refused = Vec::new();
            for (n, follow_up) in settlement.follow_ups.iter().enumerate() {
                if let Some(refusal) = self.full(&follow_up.queue).await? {
                    refused.push((n, PutAnswer::Refused(refusal)));
                }
            }
            let mut n = 0;
            settlement.follow_ups.retain(|_| {
                n += 1;
                refused.iter().all(|(r, _)| *r != n - 1)
            });
            let mut answer = self.inner().settle(vec![settlement]).await?.remove(0);
            if let SettleAnswer::Recorded { follow_ups, .. } = &mut answer {
                for (n, refusal) in refused {
                    follow_ups.insert(n, refusal);
                }
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    async fn settle_without_refused(
        &self,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<SettleAnswer>> {
        let mut answers = Vec::new();
        for mut settlement in settlements {
            let follow_ups = std::mem::take(&mut settlement.follow_ups);
            let mut refused = Vec::new();
            for (n, follow_up) in follow_ups.into_iter().enumerate() {
                let PutAnswer::Refused(why) = self.would_be(&follow_up).await? else {
                    settlement.follow_ups.push(follow_up);
                    continue;
                };
                refused.push((n, PutAnswer::Refused(why)));
            }
            let mut answer = self.inner().settle(vec![settlement]).await?.remove(0);
            if let SettleAnswer::Recorded { follow_ups, .. } = &mut answer {
                for (n, refusal) in refused {
                    follow_ups.insert(n, refusal);
                }
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// The answer to a put that leaves nothing behind: an atomic one whose
    /// neighbour is refused.
    async fn would_be(&self, follow_up: &FollowUp) -> Result<PutAnswer> {
        let mut bad = follow_up.task.clone();
        bad.key = Some(String::new());
        let queue = follow_up.queue.clone();
        let tasks = vec![follow_up.task.clone(), bad];
        let answers = self.inner().put(PutRequest { queue, tasks, atomic: true }).await?.answers;
        Ok(match answers.into_iter().next() {
            Some(PutAnswer::Refused(Refusal::Undone { .. })) | None => {
                PutAnswer::Enqueued { id: TaskId(0) }
            }
            Some(answer) => answer,
        })
    }

    async fn settle_in_two_steps(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        let mut answers = Vec::new();
        for settlement in settlements {
            let first = Settlement { follow_ups: Vec::new(), ..settlement.clone() };
            let mut answer = self.inner().settle(vec![first]).await?.remove(0);
            if let SettleAnswer::Recorded { follow_ups, .. } = &mut answer {
                // Long enough for a reader to look: it has its turn before us.
                give_way().await;
                *follow_ups = self.put_follow_ups(settlement).await?;
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Deletes running tasks under their holders' tokens, and says it was so.
    async fn cancel_at_once(&self, operation: Operation) -> Result<OperationReport> {
        let mut report = self.inner().operate(operation).await?;
        for (id, answer) in &mut report.answers {
            let token = lock(&self.shared.tokens).get(id).copied();
            if let (OperationAnswer::CancelRequested, Some(token)) = (&answer, token) {
                let settlement = Settlement::new(*id, token, Outcome::Cancelled);
                self.inner().settle(vec![settlement]).await?;
                *answer = OperationAnswer::Moved;
            }
        }
        Ok(report)
    }

    pub(super) async fn flawed_operate(&self, mut operation: Operation) -> Result<OperationReport> {
        self.mishear_operation(&mut operation);
        if self.has(Defect::CancelsRunningAtOnce) && operation.action == Action::Cancel {
            return self.cancel_at_once(operation).await;
        }
        let (Selection::Ids(ids), true) = (
            &operation.selection,
            self.has(Defect::ForgetsCancels) && operation.action == Action::Cancel,
        ) else {
            return self.inner().operate(operation).await;
        };
        let mut report = OperationReport::default();
        for id in ids {
            let found = self.inner().get(*id).await?;
            if found.is_some_and(|task| task.state == State::Processing) {
                report.answers.push((*id, OperationAnswer::CancelRequested));
            } else {
                let one = Operation { selection: Selection::Ids(vec![*id]), ..operation.clone() };
                report.answers.extend(self.inner().operate(one).await?.answers);
            }
        }
        report.answers.sort_by_key(|(id, _)| *id);
        Ok(report)
    }

    pub(super) async fn flawed_fire(&self, fire: Fire) -> Result<FireAnswer> {
        let answer = self.inner().fire(fire.clone()).await?;
        if answer == FireAnswer::AlreadyDecided && self.has(Defect::FiresTwice) {
            return self.inner().fire(Fire { by_hand: true, ..fire }).await;
        }
        Ok(answer)
    }

    pub(super) async fn flawed_stats(&self) -> Result<Vec<QueueStats>> {
        let mut stats = self.inner().stats().await?;
        if self.has(Defect::CountsDrift)
            && let Some(first) = stats.first_mut()
        {
            first.processing += self.shared.done.load(Ordering::SeqCst);
        }
        self.miscount(&mut stats);
        Ok(stats)
    }
}
